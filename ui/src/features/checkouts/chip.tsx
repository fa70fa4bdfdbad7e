import type { ReactNode } from 'react';
import { classNames } from '@/lib/class-names';

type Tone = 'success' | 'warning' | 'error';

const tones: Record<Tone, string> = {
  success: 'bg-accent-wash text-accent',
  warning: 'bg-warning-wash text-warning',
  error: 'bg-danger-wash text-danger',
};

export function Chip({ tone, children }: { tone: Tone; children: ReactNode }) {
  return (
    <span className={classNames('rounded-full px-3 py-1 text-sm font-semibold', tones[tone])}>
      {children}
    </span>
  );
}
