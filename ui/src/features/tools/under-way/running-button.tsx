import type { ComponentProps } from 'react';
import { buttonStyle } from '@/components/button-style';
import { Spinner } from '@/components/spinner';
import { Tooltip } from '@/components/tooltip';

/** A sign and a number. The word beside them is there where the bar has room: on a phone and beside the links it has none. */
export function RunningButton({ count, ...rest }: ComponentProps<'button'> & { count: number }) {
  const name = `${count} running`;
  return (
    <Tooltip text={name} align="end">
      {/* It says no more than the name, and describes nothing. */}
      {() => (
        <button
          type="button"
          aria-label={name}
          data-running
          {...rest}
          className={buttonStyle('quiet', 'sm', 'tabular-nums max-sm:min-h-11 max-sm:gap-1 max-sm:px-2')}
        >
          <span className="text-accent">
            <Spinner />
          </span>
          {count}
          <span className="-ml-1 hidden sm:max-xl:inline">running</span>
        </button>
      )}
    </Tooltip>
  );
}
