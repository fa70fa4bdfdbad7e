import type { ReactNode } from 'react';
import { Icon } from './icon';

type CenteredPageProps = { title: string; icon?: 'check' | 'warning'; children?: ReactNode };

/** A page with a single message, such as a thank-you or an error. */
export function CenteredPage({ title, icon, children }: CenteredPageProps) {
  return (
    <section className="page flex flex-col items-center py-16 text-center md:py-24">
      <title>{`${title} · Retouch`}</title>
      {icon && (
        <span
          className={`mb-6 grid size-14 place-items-center rounded-full ${icon === 'check' ? 'bg-accent-wash text-accent' : 'bg-warning-wash text-warning'}`}
        >
          <Icon name={icon} className="size-6" />
        </span>
      )}
      <h1 className="text-xl font-bold md:text-2xl">{title}</h1>
      <div className="mt-4 grid w-full max-w-md justify-items-center gap-6 text-soft">{children}</div>
    </section>
  );
}
