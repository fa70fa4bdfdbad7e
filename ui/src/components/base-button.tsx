import { type ComponentProps, useState } from 'react';

/**
 * A button without a style. One that is disabled while it has the focus keeps the focus and ignores clicks. Browsers move
 * the focus away from disabled elements, and the next Tab would start at the top of the page.
 */
export function BaseButton({ disabled, ...rest }: ComponentProps<'button'>) {
  const [isFocused, setFocused] = useState(false);
  return (
    <button
      type="button"
      {...rest}
      disabled={disabled && !isFocused}
      aria-disabled={disabled || undefined}
      onFocus={(event) => {
        setFocused(true);
        rest.onFocus?.(event);
      }}
      onBlur={(event) => {
        setFocused(false);
        rest.onBlur?.(event);
      }}
      onClick={(event) => (disabled ? event.preventDefault() : rest.onClick?.(event))}
    />
  );
}
