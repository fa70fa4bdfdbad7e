import type { ReactNode } from 'react';

/** One thing in the middle of the page: signing in, an error, a dead end. */
export function CenteredPage({ title, children }: { title: string; children?: ReactNode }) {
  return (
    <section className="page flex flex-col items-center py-16 text-center md:py-24">
      <title>{`${title} · Retouch`}</title>
      <h1 className="text-xl font-bold md:text-2xl">{title}</h1>
      <div className="mt-4 grid w-full max-w-md justify-items-center gap-6 text-soft">{children}</div>
    </section>
  );
}
