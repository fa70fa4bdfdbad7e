import { useRef, useState } from 'react';
import { Notice } from '@/components/notice';
import { useView } from '@/components/pan-zoom/use-view';
import type { Image } from '@/lib/api-types';
import { notifyError } from '@/lib/notify';
import { inverted } from './inverted';
import { isDrawn, lastClicks, type Shape } from './marks';
import { maskFile } from './mask-file';
import { MaskFooter } from './mask-footer';
import { MaskShortcuts } from './mask-shortcuts';
import { draftActions, useDraft, useMaskStore } from './mask-store';
import { MaskSurface } from './mask-surface';
import { MaskToolbar } from './mask-toolbar';
import { useSelect } from './use-select';
import { useShortcuts } from './use-shortcuts';

const loadReadMask = () => import('./read-mask');
const loadDownload = () => import('@/lib/download');

type MaskEditorProps = {
  image: Image;
  shapes: Shape[];
  /** Why the mask cannot be used; shown until it changes. */
  problem: string | null;
  onChange: () => void;
  /** How far the result may change beyond the mask, in image pixels. */
  reach: number;
  /** The result to compare the image with. */
  resultUrl: string | null;
};

/** Draws the mask: the area of the image to change. */
export function MaskEditor({ image, shapes, problem, onChange, reach, resultUrl }: MaskEditorProps) {
  const editor = useRef<HTMLDivElement>(null);
  const [isComparing, setComparing] = useState(false);
  const { done, undone, isSubmitted } = useDraft(image.id);
  const [draft] = useState(() => draftActions(image.id));
  const { frame, placement, control } = useView(image);
  const brush = useMaskStore((store) => store.brush);
  const selection = useSelect(image, control, changing(draft.mark));
  const history = {
    // The first thing to undo is a selection that is still on its way.
    undo: () => selection.cancel() || changing(draft.undo)(),
    redo: changing(draft.redo),
  };
  const isSpaceDown = useShortcuts(editor, { ...history, invert, control });
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
      const { readMask } = await loadReadMask();
      changing(draft.mark)(await readMask(file, image));
    } catch (error) {
      const isUnusable = error instanceof Error && error.name === 'UnusableMask';
      notifyError(isUnusable ? error.message : 'Failed to import the mask');
    }
  }

  async function exportMask() {
    try {
      const { saveFile } = await loadDownload();
      const file = await maskFile(shapes, image);
      if (file) saveFile(file, file.name);
      else notifyError('The mask is empty: you erased everything.');
    } catch {
      notifyError('Failed to export the mask');
    }
  }

  return (
    <div ref={editor} className="group/editor grid grid-cols-1 gap-2">
      <MaskToolbar
        canUndo={done.length > 0 || selection.isSelecting}
        canRedo={undone.length > 0}
        canClear={shapes.length > 0}
        onUndo={history.undo}
        onRedo={history.redo}
        onClear={() => changing(draft.mark)({ kind: 'clear' })}
        onSelectSubject={selection.selectSubject}
        isSelecting={selection.isSelecting}
        onInvert={invert}
      />
      <div
        className="relative max-h-[min(56dvh,42rem)] min-h-60 w-full rounded-lg border border-line bg-sunken"
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
          onStroke={changing(draft.mark)}
          onPick={selection.pick}
          clicks={selection.pending ?? lastClicks(done)}
          isSelecting={selection.isSelecting}
          comparedUrl={isComparing ? resultUrl : null}
        />
      </div>
      <MaskFooter
        placement={placement}
        control={control}
        canExport={hasMask}
        onImport={importMask}
        onExport={exportMask}
        onCompare={resultUrl ? setComparing : null}
      />
      <p id="drawing-help" className="text-sm text-soft">
        {isSubmitted ? (
          'Your next stroke starts a new mask. To change this one, use Undo or the eraser.'
        ) : (
          <>
            {brush === 'select' ? (
              <>
                Click on what should change, or drag a box around it.{' '}
                <span className="pointer-coarse:hidden">Alt-click takes away.</span>
              </>
            ) : (
              'Draw over what should change.'
            )}{' '}
            <span className="pointer-coarse:hidden">Scroll to zoom; hold Space and drag to pan.</span>
            <span className="hidden pointer-coarse:inline">Use two fingers to zoom and pan.</span>
          </>
        )}
      </p>
      <p role="status" className="sr-only">
        {selection.isSelecting ? 'Selecting…' : ''}
      </p>
      <MaskShortcuts />
      {problem && <Notice tone="error">{problem}</Notice>}
    </div>
  );
}
