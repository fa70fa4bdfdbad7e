import type { ComponentProps } from 'react';
import { buttonStyle } from '@/components/button-style';
import { Spinner } from '@/components/spinner';
import { Tooltip } from '@/components/tooltip';
import { plural, t } from '@/lib/translate';

/** A spinner and a count. The word “running” appears only where the top bar has room for it. */
export function ActiveJobsButton({ count, ...rest }: ComponentProps<'button'> & { count: number }) {
  const name = plural(count, { one: '# running', other: '# running' });
  return (
    <Tooltip text={name} align="end">
      {/* The tooltip repeats the name, so it is not also the description. */}
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
          <span className="-ml-1 hidden sm:max-xl:inline">{t('running')}</span>
        </button>
      )}
    </Tooltip>
  );
}
