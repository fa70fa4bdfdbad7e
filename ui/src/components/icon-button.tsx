import type { ReactNode } from 'react';
import { BaseButton } from './base-button';

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
    <BaseButton
      aria-label={label}
      title={title}
      disabled={disabled}
      onClick={onClick}
      className="grid size-10 thumb:size-11 place-items-center rounded-sm hover:bg-sunken aria-disabled:cursor-not-allowed aria-disabled:text-soft aria-disabled:opacity-60"
    >
      {children}
    </BaseButton>
  );
}
