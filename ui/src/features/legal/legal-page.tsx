import type { ReactNode } from 'react';
import { PageHeader } from '@/components/page-header';

type LegalPageProps = { title: string; date: string; sections: { title: string; text: ReactNode }[] };

export function LegalPage({ title, date, sections }: LegalPageProps) {
  return (
    <article className="page max-w-3xl! py-8 md:py-12">
      <PageHeader title={title} text={date} />
      <div className="grid gap-8">
        {sections.map((section) => (
          <section key={section.title}>
            <h2 className="text-lg font-semibold">{section.title}</h2>
            <p className="mt-2 text-soft">{section.text}</p>
          </section>
        ))}
      </div>
    </article>
  );
}
