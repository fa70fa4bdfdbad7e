import { type ReactNode, useEffect } from 'react';
import { Link, useLocation } from 'react-router';
import { PageHeader } from '@/components/page-header';
import { useLanguage } from '@/lib/language';
import { t } from '@/lib/translate';

export type LegalSection = { id: string; title: string; content: ReactNode };

type LegalPageProps = { title: string; date: string; summary: string; sections: LegalSection[] };

/**
 * A long text with short lines and a table of contents that stays visible. Only its frame is translated: a legal
 * text is valid in the language in which its author wrote it.
 */
export function LegalPage({ title, date, summary, sections }: LegalPageProps) {
  const { language } = useLanguage();
  const location = useLocation();

  // The router scrolls to the section. The next Tab starts there, too, as after a link of the browser.
  useEffect(() => {
    document.getElementById(location.hash.slice(1))?.focus({ preventScroll: true });
  }, [location]);

  return (
    <div className="page py-8 md:py-12">
      <PageHeader title={title} text={<span lang="en">{date}</span>} />
      <div className="grid items-start gap-x-16 gap-y-10 lg:grid-cols-[15rem_1fr]">
        <nav aria-labelledby="contents" className="lg:sticky lg:top-24">
          <h2 id="contents" className="text-sm font-semibold">
            {t('Contents')}
          </h2>
          <ol className="mt-2 text-sm" lang="en">
            {sections.map((section, index) => (
              <li key={section.id}>
                {/* A plain link makes an entry of the history that the router cannot tell from others. */}
                <Link
                  to={{ hash: section.id }}
                  className="flex min-h-8 thumb:min-h-11 items-center gap-3 rounded-sm text-soft underline-offset-4 hover:text-ink hover:underline"
                >
                  <span className="w-5 shrink-0 tabular-nums">{index + 1}</span>
                  {section.title}
                </Link>
              </li>
            ))}
          </ol>
        </nav>
        <article className="max-w-[70ch]" lang="en">
          {language !== 'en' && (
            <p lang={language} className="mb-6 text-soft">
              {t('This text is available in English only.')}
            </p>
          )}
          <p className="text-lg">{summary}</p>
          {sections.map((section, index) => (
            <section
              key={section.id}
              id={section.id}
              tabIndex={-1}
              aria-labelledby={`${section.id}-title`}
              className="mt-10"
            >
              <h2 id={`${section.id}-title`} className="text-lg font-semibold">
                {index + 1}. {section.title}
              </h2>
              <div className="mt-3 grid gap-3 text-soft [&_a]:text-accent [&_a]:underline [&_a]:underline-offset-4 [&_li]:mt-1 [&_ul]:list-disc [&_ul]:pl-5">
                {section.content}
              </div>
            </section>
          ))}
        </article>
      </div>
    </div>
  );
}
