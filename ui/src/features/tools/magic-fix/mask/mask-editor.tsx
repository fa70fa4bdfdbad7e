import { useRef, useState } from 'react';
import { Notice } from '@/components/notice';
import type { Image } from '@/lib/api-types';
import { notifyError } from '@/lib/notify';
import { isDrawn, type Shape } from './marks';
import { maskFile } from './mask-file';
import { MaskFooter } from './mask-footer';
import { MaskShortcuts } from './mask-shortcuts';
import { useWork, workOf } from './mask-store';
import { MaskSurface } from './mask-surface';
import { MaskToolbar } from './mask-toolbar';
import { useShortcuts } from './use-shortcuts';
import { useView } from './use-view';

const loadReadMask = () => import('./read-mask');
const loadDownload = () => import('@/lib/download');

type MaskEditorProps = {
  image: Image;
  shapes: Shape[];
  /** Why the mask cannot be used; stays until it changes. */
  problem: string | null;
  onChange: () => void;
  /** The result that the image can be compared with. */
  resultUrl: string | null;
};

/** Draws the mask: the area of the image that is to be changed. */
export function MaskEditor({ image, shapes, problem, onChange, resultUrl }: MaskEditorProps) {
  const editor = useRef<HTMLDivElement>(null);
  const [isComparing, setComparing] = useState(false);
  const { done, undone, isSpent } = useWork(image.id);
  const [work] = useState(() => workOf(image.id));
  const { frame, placed, control } = useView(image);
  const history = { undo: changing(work.undo), redo: changing(work.redo) };
  const isSpaceDown = useShortcuts(editor, { ...history, control });
  const hasMask = isDrawn(shapes);

  /** Whatever changes the mask also takes back what was said of the old one. */
  function changing<Arguments extends unknown[]>(change: (...given: Arguments) => void) {
    return (...given: Arguments) => {
      change(...given);
      onChange();
    };
  }

  async function read(file: File) {
    try {
      const { readMask } = await loadReadMask();
      changing(work.mark)(await readMask(file, image));
    } catch (error) {
      const isUnusable = error instanceof Error && error.name === 'UnusableMask';
      notifyError(isUnusable ? error.message : 'Failed to import the mask');
    }
  }

  async function write() {
    try {
      const { saveFile } = await loadDownload();
      const file = await maskFile(shapes, image);
      if (file) saveFile(file, file.name);
      else notifyError('Nothing is left of this mask.');
    } catch {
      notifyError('Failed to export the mask');
    }
  }

  return (
    <div ref={editor} className="group/editor grid grid-cols-1 gap-2">
      <MaskToolbar
        canUndo={done.length > 0}
        canRedo={undone.length > 0}
        canClear={shapes.length > 0}
        onUndo={history.undo}
        onRedo={history.redo}
        onClear={() => changing(work.mark)({ kind: 'clear' })}
      />
      <div
        className="relative max-h-[min(56dvh,42rem)] min-h-60 w-full rounded-lg border border-line bg-sunken"
        style={{ aspectRatio: `${image.x} / ${image.y}` }}
      >
        <MaskSurface
          image={image}
          shapes={shapes}
          isSpent={isSpent}
          frame={frame}
          placed={placed}
          control={control}
          isSpaceDown={isSpaceDown}
          onStroke={changing(work.mark)}
          instead={isComparing ? resultUrl : null}
        />
      </div>
      <MaskFooter
        placed={placed}
        control={control}
        canExport={hasMask}
        onImport={read}
        onExport={write}
        onCompare={resultUrl ? setComparing : null}
      />
      <p id="drawing-help" className="text-sm text-soft">
        {isSpent ? (
          'The next stroke begins a new mask. Undo or the eraser goes on with this one.'
        ) : (
          <>
            Draw over what should change.{' '}
            <span className="pointer-coarse:hidden">Turn the wheel to zoom, hold Space to move.</span>
            <span className="hidden pointer-coarse:inline">Two fingers zoom and move.</span>
          </>
        )}
      </p>
      <MaskShortcuts />
      {problem && <Notice tone="error">{problem}</Notice>}
    </div>
  );
}
