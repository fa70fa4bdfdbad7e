import { type ComponentProps, useState } from 'react';
import { type ButtonLook, type ButtonSize, buttonStyle } from './button-style';
import { Spinner } from './spinner';

type ButtonProps = ComponentProps<'button'> & { look?: ButtonLook; size?: ButtonSize; isBusy?: boolean };

/**
 * A button that is disabled under the keyboard stays where the keyboard is until it is left: a browser takes the focus
 * away from what is disabled, and the next Tab would begin at the top of the page. It does nothing meanwhile.
 */
export function Button({ look, size, isBusy = false, className, children, disabled, ...rest }: ButtonProps) {
  const [isFocused, setFocused] = useState(false);
  const isBlocked = disabled || isBusy;
  return (
    <button
      type="button"
      className={buttonStyle(look, size, className)}
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
