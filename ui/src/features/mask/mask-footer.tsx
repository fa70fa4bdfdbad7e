import { useRef, useState } from 'react';
import { BaseButton } from '@/components/base-button';
import { HoldButton } from '@/components/hold-button';
import { Icon } from '@/components/icon';
import type { Placement, ViewControl } from '@/components/pan-zoom/use-view';
import { ZoomControls } from '@/components/pan-zoom/zoom-controls';
import { Spinner } from '@/components/spinner';
import { t } from '@/lib/translate';
import type { ComparedPicture } from './edited-picture';
import { MaskIcon } from './mask-icon';

const textButton =
  'inline-flex min-h-10 thumb:min-h-11 thumb:min-w-11 items-center gap-2 rounded-sm px-2.5 text-sm font-medium hover:bg-sunken aria-disabled:cursor-not-allowed aria-disabled:text-soft aria-disabled:opacity-60';

/** Narrow screens show icons only; screen readers always get the words. */
const wideOnly = 'max-sm:sr-only';

type MaskFooterProps = {
  placement: Placement | null;
  control: ViewControl;
  canExport: boolean;
  onImport: (file: File) => void;
  onExport: () => Promise<void>;
  /** Null while there is nothing to compare with. */
  compared: ComparedPicture | null;
  comparing: 'hold' | 'slider' | null;
  onCompare: (how: 'hold' | 'slider' | null) => void;
};

/** Zoom, import, export and comparison with the result. */
export function MaskFooter({
  placement,
  control,
  canExport,
  onImport,
  onExport,
  compared,
  comparing,
  onCompare,
}: MaskFooterProps) {
  const input = useRef<HTMLInputElement>(null);
  const [isExporting, setExporting] = useState(false);
  const holdName = compared?.isBefore ? t('Hold to see before') : t('Hold to see the result');

  async function exportMask() {
    setExporting(true);
    await onExport();
    setExporting(false);
  }

  return (
    <div className="flex flex-wrap items-center justify-between gap-x-3 gap-y-1">
      <div className="-ml-2.5 flex items-center">
        <ZoomControls
          control={control}
          level={
            <span className="min-w-12 text-center text-sm text-soft tabular-nums">
              {placement && `${Math.round(placement.view.scale * 100)}%`}
            </span>
          }
        />
      </div>
      <div className="-mr-2.5 flex flex-wrap items-center">
        {compared && (
          <>
            <HoldButton
              name={holdName}
              isOn={comparing === 'hold'}
              onHold={(isHeld) => onCompare(isHeld ? 'hold' : null)}
              className={`${textButton} touch-none aria-pressed:bg-accent-wash aria-pressed:text-accent`}
            >
              <MaskIcon name="eye" />
              <span className={wideOnly}>{holdName}</span>
            </HoldButton>
            <button
              type="button"
              title={t('Compare before and after')}
              aria-pressed={comparing === 'slider'}
              className={`${textButton} aria-pressed:bg-accent-wash aria-pressed:text-accent`}
              onClick={() => onCompare(comparing === 'slider' ? null : 'slider')}
            >
              <MaskIcon name="slider" />
              <span className={wideOnly}>{t('Slider')}</span>
            </button>
          </>
        )}
        <input
          ref={input}
          type="file"
          accept="image/png"
          aria-label={t('Mask file')}
          hidden
          onChange={({ target }) => {
            const file = target.files?.[0];
            if (file) onImport(file);
            // Lets the user choose the same file again.
            target.value = '';
          }}
        />
        <button
          type="button"
          title={t('Import mask (PNG)')}
          className={textButton}
          onClick={() => input.current?.click()}
        >
          <Icon name="upload" />
          <span className={wideOnly}>{t('Import mask')}</span>
        </button>
        <BaseButton
          title={t('Export mask (PNG)')}
          className={textButton}
          disabled={!canExport || isExporting}
          onClick={exportMask}
        >
          {isExporting ? <Spinner /> : <Icon name="download" />}
          <span className={wideOnly}>{t('Export mask')}</span>
        </BaseButton>
      </div>
    </div>
  );
}
