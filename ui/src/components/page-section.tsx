import { type ReactNode, useId } from 'react';

type PageSectionProps = { title: string; text: ReactNode; children: ReactNode };

/** A section of a page, such as the account: the description on the left, the controls on the right. */
export function PageSection({ title, text, children }: PageSectionProps) {
  const id = useId();
  return (
    <section
      aria-labelledby={id}
      className="grid gap-4 border-t border-line py-8 lg:grid-cols-[1fr_2fr] lg:gap-12"
    >
      <div>
        <h2 id={id} className="text-lg font-semibold">
          {title}
        </h2>
        <div className="mt-2 text-sm text-soft">{text}</div>
      </div>
      <div className="grid min-w-0 grid-cols-1 content-start gap-6">{children}</div>
    </section>
  );
}
