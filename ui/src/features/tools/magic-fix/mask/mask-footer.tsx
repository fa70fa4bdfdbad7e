import { useRef, useState } from 'react';
import { Icon } from '@/components/icon';
import { Spinner } from '@/components/spinner';
import { EditorIcon } from '../editor-icon';
import { ToolButton } from '../tool-button';
import type { Placed, ViewControl } from './use-view';

const textButton =
  'inline-flex min-h-10 thumb:min-h-11 thumb:min-w-11 items-center gap-2 rounded-sm px-2.5 text-sm font-medium hover:bg-sunken disabled:cursor-not-allowed disabled:text-soft disabled:opacity-60';

/** On a narrow screen the icons speak for themselves; to those who cannot see, the words always do. */
const wideOnly = 'max-sm:sr-only';

type MaskFooterProps = {
  placed: Placed | null;
  control: ViewControl;
  canExport: boolean;
  onImport: (file: File) => void;
  onExport: () => Promise<void>;
  /** Null while there is no result to compare with. */
  onCompare: ((isHeld: boolean) => void) | null;
};

/** How closely to look, and what goes in and out. */
export function MaskFooter({ placed, control, canExport, onImport, onExport, onCompare }: MaskFooterProps) {
  const input = useRef<HTMLInputElement>(null);
  const [isWriting, setWriting] = useState(false);

  async function write() {
    setWriting(true);
    await onExport();
    setWriting(false);
  }

  return (
    <div className="flex flex-wrap items-center justify-between gap-x-3 gap-y-1">
      <div className="-ml-2.5 flex items-center">
        <ToolButton icon="zoomOut" label="Zoom out" disabled={control.isFitted} onClick={control.zoomOut} />
        <span className="min-w-12 text-center text-sm text-soft tabular-nums">
          {placed && `${Math.round(placed.view.scale * 100)}%`}
        </span>
        <ToolButton icon="zoomIn" label="Zoom in" onClick={control.zoomIn} />
        <ToolButton
          icon="fit"
          label="Fit"
          title="Fit (0)"
          disabled={control.isFitted}
          onClick={control.fit}
        />
      </div>
      <div className="-mr-2.5 flex flex-wrap items-center">
        {onCompare && <HoldButton onHold={onCompare} />}
        <input
          ref={input}
          type="file"
          accept="image/png"
          aria-label="Mask file"
          hidden
          onChange={({ target }) => {
            const file = target.files?.[0];
            if (file) onImport(file);
            // The same file once more is a choice too.
            target.value = '';
          }}
        />
        <button
          type="button"
          title="Import mask (PNG)"
          className={textButton}
          onClick={() => input.current?.click()}
        >
          <Icon name="upload" />
          <span className={wideOnly}>Import mask</span>
        </button>
        <button
          type="button"
          title="Export mask (PNG)"
          className={textButton}
          disabled={!canExport || isWriting}
          onClick={write}
        >
          {isWriting ? <Spinner /> : <Icon name="download" />}
          <span className={wideOnly}>Export mask</span>
        </button>
      </div>
    </div>
  );
}

function HoldButton({ onHold }: { onHold: (isHeld: boolean) => void }) {
  const release = () => onHold(false);
  return (
    <button
      type="button"
      title="Hold to see the result"
      className={`${textButton} touch-none`}
      onPointerDown={() => onHold(true)}
      onPointerUp={release}
      onPointerLeave={release}
      onPointerCancel={release}
      onContextMenu={(event) => event.preventDefault()}
      onKeyDown={({ key }) => (key === ' ' || key === 'Enter') && onHold(true)}
      onKeyUp={release}
      onBlur={release}
    >
      <EditorIcon name="eye" />
      <span className={wideOnly}>Hold to see the result</span>
    </button>
  );
}
