import { useMemo, useRef, useState } from 'react';
import { Notice } from '@/components/notice';
import { useView } from '@/components/pan-zoom/use-view';
import { useWheelZoom } from '@/components/pan-zoom/use-wheel-zoom';
import { loadWithRetry } from '@/lib/load-with-retry';
import { notifyError } from '@/lib/notify';
import { t } from '@/lib/translate';
import { CompareSlider } from './compare-slider';
import type { ComparedPicture, EditedPicture, RunHistory } from './edited-picture';
import { inverted } from './inverted';
import { isDrawn, lastClicks, type Shape } from './marks';
import { maskFile } from './mask-file';
import { MaskFooter } from './mask-footer';
import { maskLetters } from './mask-letters';
import { MaskShortcuts } from './mask-shortcuts';
import { draftActions, useDraft, useMaskStore } from './mask-store';
import { MaskSurface } from './mask-surface';
import { MaskToolbar } from './mask-toolbar';
import { useSelect } from './use-select';
import { useShortcuts } from './use-shortcuts';

const loadReadMask = () => import('./read-mask');
const loadDownload = () => import('@/lib/download');

type MaskEditorProps = {
  image: EditedPicture;
  shapes: Shape[];
  /** Why the mask cannot be used; shown until it changes. */
  problem: string | null;
  onChange: () => void;
  /** How far the result may change beyond the mask, in image pixels. */
  reach: number;
  compared: ComparedPicture | null;
  runs: RunHistory;
};

/** Draws the mask: the area of the image to change. */
export function MaskEditor({ image, shapes, problem, onChange, reach, compared, runs }: MaskEditorProps) {
  const editor = useRef<HTMLDivElement>(null);
  const [comparing, setComparing] = useState<'hold' | 'slider' | null>(null);
  const { done, undone, isSubmitted } = useDraft(image.key);
  const draft = useMemo(() => draftActions(image.key), [image.key]);
  const { frame, placement, control } = useView(image);
  /** The picture and the slider that covers it. */
  const pictures = useRef<HTMLDivElement>(null);
  useWheelZoom(pictures, control);
  const brush = useMaskStore((store) => store.brush);
  const selection = useSelect(image, control, changing(draft.mark));
  const history = {
    // The first thing to undo is a selection that is still on its way.
    undo: () => selection.cancel() || (done.length > 0 ? changing(draft.undo)() : runs.undo?.()),
    redo: () => (undone.length > 0 ? changing(draft.redo)() : runs.redo?.()),
  };
  const isSpaceDown = useShortcuts(editor, { ...history, control, letters: maskLetters(invert) });
  /** The picture below the slider, which covers its left half with the picture from before. */
  const after = compared?.isBefore ? image : compared;
  const shown = comparing === 'hold' ? compared : comparing === 'slider' ? after : null;
  /** Full pixels only where they can be seen. */
  const urlOf = ({ url, previewUrl }: EditedPicture | ComparedPicture) =>
    (control.isFitted && previewUrl) || url;
  const hasMask = isDrawn(shapes);

  /** Also reports the change, which clears the problem of the old mask. */
  function changing<Arguments extends unknown[]>(change: (...given: Arguments) => void) {
    return (...given: Arguments) => {
      change(...given);
      onChange();
    };
  }

  function invert() {
    changing(draft.mark)(inverted(shapes, image));
  }

  async function importMask(file: File) {
    try {
      const { readMask } = await loadWithRetry(loadReadMask);
      changing(draft.mark)(await readMask(file, image));
    } catch (error) {
      const isUnusable = error instanceof Error && error.name === 'UnusableMask';
      notifyError(isUnusable ? error.message : t('Failed to import the mask'));
    }
  }

  async function exportMask() {
    try {
      const { saveFile } = await loadWithRetry(loadDownload);
      const file = await maskFile(shapes, image);
      if (file) saveFile(file, file.name);
      else notifyError(t('The mask is empty: you erased everything.'));
    } catch {
      notifyError(t('Failed to export the mask'));
    }
  }

  return (
    // A focused element must not lie behind the prompt. As a scroll padding of the page, it would move the prompt itself.
    <div ref={editor} className="group/editor grid grid-cols-1 gap-2 bar:**:scroll-mb-33">
      {/* Above the prompt that stays in sight, however many rows the tools take. */}
      <div className="flex flex-col gap-2 bar:max-h-[calc(100dvh-25.625rem)] bar:low:max-h-[max(18.25rem,100dvh-23.5rem)]">
        <MaskToolbar
          canUndo={done.length > 0 || selection.isSelecting || runs.undo !== null}
          canRedo={undone.length > 0 || runs.redo !== null}
          canClear={shapes.length > 0}
          onUndo={history.undo}
          onRedo={history.redo}
          onClear={() => changing(draft.mark)({ kind: 'clear' })}
          onSelectSubject={selection.selectSubject}
          isSelecting={selection.isSelecting}
          onInvert={invert}
        />
        <div
          ref={pictures}
          className="relative max-h-[min(56dvh,42rem)] min-h-60 w-full rounded-lg border border-line bg-sunken bar:max-h-168 bar:min-h-40"
          style={{ aspectRatio: `${image.x} / ${image.y}` }}
        >
          <MaskSurface
            image={image}
            shapes={shapes}
            isSubmitted={isSubmitted}
            reach={reach}
            frame={frame}
            placement={placement}
            control={control}
            isSpaceDown={isSpaceDown}
            // A comparison hides the mask.
            onBegin={() => setComparing(null)}
            onStroke={changing(draft.mark)}
            onPick={selection.pick}
            clicks={selection.pending ?? lastClicks(done)}
            isSelecting={selection.isSelecting}
            url={urlOf(shown ?? image)}
            isComparing={shown !== null}
          />
          {comparing === 'slider' && compared && placement && (
            <CompareSlider
              beforeUrl={urlOf(compared.isBefore ? compared : image)}
              size={image}
              view={placement.view}
            />
          )}
        </div>
      </div>
      <MaskFooter
        placement={placement}
        control={control}
        canExport={hasMask}
        onImport={importMask}
        onExport={exportMask}
        compared={compared}
        comparing={comparing}
        onCompare={setComparing}
      />
      <p id="drawing-help" className="text-sm text-soft">
        {isSubmitted ? (
          t('Your next stroke starts a new mask. To change this one, use Undo or the eraser.')
        ) : (
          <>
            {brush === 'select' ? (
              <>
                {t('Click on what should change, or drag a box around it.')}{' '}
                <span className="pointer-coarse:hidden">{t('Alt-click takes away.')}</span>
              </>
            ) : (
              t('Draw over what should change.')
            )}{' '}
            <span className="pointer-coarse:hidden">{t('Scroll to zoom; hold Space and drag to pan.')}</span>
            <span className="hidden pointer-coarse:inline">{t('Use two fingers to zoom and pan.')}</span>
          </>
        )}
      </p>
      <p role="status" className="sr-only">
        {selection.isSelecting ? t('Selecting…') : ''}
      </p>
      <MaskShortcuts />
      {problem && <Notice tone="error">{problem}</Notice>}
    </div>
  );
}
