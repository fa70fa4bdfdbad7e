import type { ReactNode } from 'react';

type IconButtonProps = {
  label: string;
  title?: string;
  disabled?: boolean;
  onClick: () => void;
  /** The icon. */
  children: ReactNode;
};

export function IconButton({ label, title = label, disabled, onClick, children }: IconButtonProps) {
  return (
    <button
      type="button"
      aria-label={label}
      title={title}
      disabled={disabled}
      onClick={onClick}
      className="grid size-10 thumb:size-11 place-items-center rounded-sm hover:bg-sunken disabled:cursor-not-allowed disabled:text-soft disabled:opacity-60"
    >
      {children}
    </button>
  );
}
