import type { ReactNode } from 'react';
import { classNames } from '@/lib/class-names';
import { Icon } from './icon';

type Tone = 'info' | 'warning' | 'error';

const tones: Record<Tone, string> = {
  info: 'bg-accent-wash text-ink',
  warning: 'bg-warning-wash text-warning',
  error: 'bg-danger-wash text-danger',
};

/** A message that stays on the page, next to the thing it concerns. */
export function Notice({ tone = 'info', children }: { tone?: Tone; children: ReactNode }) {
  return (
    <div
      role={tone === 'info' ? 'status' : 'alert'}
      className={classNames('flex gap-3 rounded-md px-4 py-3 text-sm', tones[tone])}
    >
      <Icon name={tone === 'info' ? 'info' : 'warning'} />
      <div className="min-w-0 flex-1">{children}</div>
    </div>
  );
}
