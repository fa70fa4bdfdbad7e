import type { ReactNode } from 'react';

type PageHeaderProps = {
  title: string;
  /** What goes on here, for the name of the tab. */
  status?: string | null;
  text?: ReactNode;
  children?: ReactNode;
};

/** The first thing of a page: its name, one sentence, and what can be done with the whole. */
export function PageHeader({ title, status, text, children }: PageHeaderProps) {
  return (
    <header className="mb-6 flex flex-wrap items-center justify-between gap-4 md:mb-8">
      <title>{[status, title, 'Retouch'].filter(Boolean).join(' · ')}</title>
      <div className="max-w-2xl">
        <h1 className="text-xl font-bold md:text-2xl">{title}</h1>
        {text && <p className="mt-2 text-soft">{text}</p>}
      </div>
      {children && <div className="flex flex-wrap gap-3">{children}</div>}
    </header>
  );
}
