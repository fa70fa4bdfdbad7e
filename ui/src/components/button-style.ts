import { classNames } from '@/lib/class-names';

export type ButtonVariant = 'primary' | 'secondary' | 'quiet' | 'danger';
export type ButtonSize = 'md' | 'sm' | 'lg';

const variants: Record<ButtonVariant, string> = {
  primary: 'bg-accent text-on-accent border-transparent hover:bg-accent-strong',
  secondary: 'bg-surface text-ink border-control hover:bg-sunken',
  quiet: 'bg-transparent text-ink border-transparent hover:bg-sunken',
  danger: 'bg-surface text-danger border-danger hover:bg-danger-wash',
};

const sizes: Record<ButtonSize, string> = {
  sm: 'min-h-9 thumb:min-h-11 px-3 text-sm whitespace-nowrap',
  // In a row, it keeps its width; in a narrow column, its text wraps.
  md: 'min-h-11 shrink-0 px-4 py-2 text-sm',
  lg: 'min-h-12 px-6 py-2 text-base',
};

/** The classes of buttons, and of links that look like buttons. */
export function buttonStyle(
  variant: ButtonVariant = 'primary',
  size: ButtonSize = 'md',
  extra?: string,
): string {
  return classNames(
    'inline-flex items-center justify-center gap-2 rounded-md border font-semibold text-center',
    'transition-colors select-none',
    'disabled:border-line disabled:bg-sunken disabled:text-soft disabled:cursor-not-allowed',
    'aria-disabled:border-line aria-disabled:bg-sunken aria-disabled:text-soft aria-disabled:cursor-not-allowed',
    variants[variant],
    sizes[size],
    extra,
  );
}
