import { type ComponentProps, useState } from 'react';
import { type ButtonSize, type ButtonVariant, buttonStyle } from './button-style';
import { Spinner } from './spinner';

type ButtonProps = ComponentProps<'button'> & {
  variant?: ButtonVariant;
  size?: ButtonSize;
  isBusy?: boolean;
};

/**
 * A button that is disabled while it has the focus keeps the focus and ignores clicks. Browsers move the focus away
 * from disabled elements, and the next Tab would start at the top of the page.
 */
export function Button({
  variant,
  size,
  isBusy = false,
  className,
  children,
  disabled,
  ...rest
}: ButtonProps) {
  const [isFocused, setFocused] = useState(false);
  const isBlocked = disabled || isBusy;
  return (
    <button
      type="button"
      className={buttonStyle(variant, size, className)}
      aria-busy={isBusy || undefined}
      {...rest}
      disabled={isBlocked && !isFocused}
      aria-disabled={isBlocked || undefined}
      onFocus={(event) => {
        setFocused(true);
        rest.onFocus?.(event);
      }}
      onBlur={(event) => {
        setFocused(false);
        rest.onBlur?.(event);
      }}
      onClick={(event) => (isBlocked ? event.preventDefault() : rest.onClick?.(event))}
    >
      {isBusy && <Spinner />}
      {children}
    </button>
  );
}
