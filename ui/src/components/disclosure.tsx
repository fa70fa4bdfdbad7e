import type { ReactNode } from 'react';
import { classNames } from '@/lib/class-names';
import { Icon } from './icon';

type DisclosureProps = { label: string; className?: string; children: ReactNode };

/** Secondary text that a click unfolds. */
export function Disclosure({ label, className, children }: DisclosureProps) {
  return (
    <details className={classNames('group/disclosure text-sm text-soft', className)}>
      <summary className="inline-flex thumb:min-h-11 cursor-pointer items-center gap-1 rounded-sm font-medium underline-offset-4 hover:text-ink hover:underline">
        {label}
        <Icon name="chevron" className="size-4 transition-transform group-open/disclosure:rotate-180" />
      </summary>
      {children}
    </details>
  );
}
