import type { ReactNode } from 'react';

type PageHeaderProps = {
  title: string;
  /** Precedes the title in the browser tab, such as the progress. */
  status?: string | null;
  text?: ReactNode;
  children?: ReactNode;
};

/** The heading of a page, a sentence and its actions. Also sets the document title. */
export function PageHeader({ title, status, text, children }: PageHeaderProps) {
  return (
    <header className="mb-6 flex flex-wrap items-center justify-between gap-4 md:mb-8 low:mb-4">
      <title>{[status, title, 'Retouch'].filter(Boolean).join(' · ')}</title>
      <div className="max-w-2xl">
        <h1 className="text-xl font-bold md:text-2xl">{title}</h1>
        {text && <p className="mt-2 text-soft">{text}</p>}
      </div>
      {children && <div className="flex flex-wrap gap-3">{children}</div>}
    </header>
  );
}
