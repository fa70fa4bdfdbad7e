import type { ComponentProps } from 'react';
import { BaseButton } from './base-button';
import { type ButtonSize, type ButtonVariant, buttonStyle } from './button-style';
import { Spinner } from './spinner';

type ButtonProps = ComponentProps<'button'> & {
  variant?: ButtonVariant;
  size?: ButtonSize;
  isBusy?: boolean;
};

/** A button in the style of the page. It keeps the focus when it is disabled or busy. */
export function Button({
  variant,
  size,
  isBusy = false,
  className,
  children,
  disabled,
  ...rest
}: ButtonProps) {
  return (
    <BaseButton
      className={buttonStyle(variant, size, className)}
      aria-busy={isBusy || undefined}
      {...rest}
      disabled={disabled || isBusy}
    >
      {isBusy && <Spinner />}
      {children}
    </BaseButton>
  );
}
