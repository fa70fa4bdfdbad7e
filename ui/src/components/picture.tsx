import { type ComponentProps, useState } from 'react';
import { classNames } from '@/lib/class-names';
import { t } from '@/lib/translate';
import { Icon } from './icon';

type PictureProps = ComponentProps<'img'> & {
  /** A sentence has no room in a thumbnail. */
  isThumbnail?: boolean;
  /** Called with true after each attempt to load it that failed, and with false once it has loaded. */
  onFailed?: ((hasFailed: boolean) => void) | undefined;
};

/** A picture in a positioned element. While it cannot be loaded, the page says so in its place. */
export function Picture({ isThumbnail, onFailed, className, ...img }: PictureProps) {
  /** The address that could not be loaded: another one may be. */
  const [failed, setFailed] = useState<string | null>(null);
  const hasFailed = failed === img.src;
  return (
    <>
      {/* biome-ignore lint/a11y/useAltText: among the properties. */}
      <img
        {...img}
        onError={() => {
          setFailed(img.src ?? null);
          onFailed?.(true);
        }}
        onLoad={() => {
          setFailed(null);
          onFailed?.(false);
        }}
        className={classNames(className, hasFailed && 'opacity-0')}
      />
      {hasFailed && (
        <span
          className={classNames(
            'absolute inset-0 grid place-content-center justify-items-center gap-2 bg-sunken p-2 text-center text-sm text-soft',
            isThumbnail && 'rounded-md',
          )}
        >
          <Icon name="image" />
          {!isThumbnail && t('This picture could not be loaded.')}
        </span>
      )}
    </>
  );
}
