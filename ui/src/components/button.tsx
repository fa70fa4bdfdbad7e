import type { ComponentProps } from 'react';
import { type ButtonLook, type ButtonSize, buttonStyle } from './button-style';
import { Spinner } from './spinner';

type ButtonProps = ComponentProps<'button'> & { look?: ButtonLook; size?: ButtonSize; isBusy?: boolean };

export function Button({ look, size, isBusy = false, className, children, disabled, ...rest }: ButtonProps) {
  return (
    <button
      type="button"
      className={buttonStyle(look, size, className)}
      disabled={disabled || isBusy}
      aria-busy={isBusy || undefined}
      {...rest}
    >
      {isBusy && <Spinner />}
      {children}
    </button>
  );
}
