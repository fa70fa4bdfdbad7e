import type { ReactNode } from 'react';
import { Icon, type IconName } from './icon';

type EmptyStateProps = { icon: IconName; title: string; children?: ReactNode };

export function EmptyState({ icon, title, children }: EmptyStateProps) {
  return (
    <div className="flex min-h-48 flex-col items-center justify-center gap-3 rounded-lg border border-line bg-surface p-8 text-center">
      <Icon name={icon} className="size-8 text-soft" />
      <p className="text-base font-semibold">{title}</p>
      {children && <div className="text-sm text-soft">{children}</div>}
    </div>
  );
}
