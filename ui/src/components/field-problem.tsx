import type { ReactNode } from 'react';
import { classNames } from '@/lib/class-names';
import { Icon } from './icon';

type FieldProblemProps = { id?: string; className?: string; children: ReactNode };

/** The error of a field, right below it. */
export function FieldProblem({ id, className, children }: FieldProblemProps) {
  return (
    <p id={id} role="alert" className={classNames('flex gap-2 text-sm text-danger', className)}>
      <Icon name="warning" />
      <span className="min-w-0">{children}</span>
    </p>
  );
}
