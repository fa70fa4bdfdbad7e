import { type ReactNode, useState } from 'react';
import { Icon } from '@/components/icon';
import { PictureBox } from '@/components/picture-box';
import type { Tool } from '@/features/catalog/tool';
import type { Result, ResultItem } from '@/lib/api-types';
import type { Backdrop } from '@/lib/download';
import { backdropCss } from './backdrop-css';
import { NextSteps } from './next-steps';
import { ResultPreview, type View } from './result-preview';
import { ResultStrip } from './result-strip';
import { ResultToolbar } from './result-toolbar';

type ResultGalleryProps = {
  results: ResultItem[];
  original: { url: string; x: number; y: number };
  tool: Tool;
  selectedId: string | null;
  onSelect: (resultId: string) => void;
  onDelete: (resultId: string) => void;
  isDeleting: boolean;
  empty: ReactNode;
  /** The progress of the current run, shown where its result will appear. */
  progress: ReactNode;
  describe?: ((result: ResultItem) => ReactNode) | undefined;
  onContinue?: ((result: Result) => void) | undefined;
  /** The result that this page already goes on with. */
  editedId?: string | null | undefined;
};

export function ResultGallery(props: ResultGalleryProps) {
  const { results, original, tool, selectedId, onSelect, onDelete, isDeleting } = props;
  const { empty, progress } = props;
  const [view, setView] = useState<View>('result');
  const [backdrop, setBackdrop] = useState<Backdrop>(null);
  const selected = results.find(({ imageId }) => imageId === selectedId) ?? results[0];

  if (!selected) {
    return (
      <PictureBox
        width={original.x}
        height={original.y}
        overlay={
          // Over the whole frame: a tall picture leaves no room for text.
          progress ?? (
            <div className="absolute inset-0 grid place-content-center justify-items-center gap-2 p-6 text-center">
              <Icon name="image" className="size-8 text-soft" />
              <p className="font-semibold">No images to show</p>
              <p className="text-sm text-soft">{empty}</p>
            </div>
          )
        }
      >
        {progress && (
          <img src={original.url} alt="" className="absolute inset-0 size-full opacity-30 grayscale" />
        )}
      </PictureBox>
    );
  }
  return (
    <div className="grid gap-4">
      <ResultPreview
        result={selected}
        alt={tool.texts.result}
        originalUrl={original.url}
        view={view}
        onView={setView}
        background={backdropCss(backdrop)}
        progress={progress}
        note={props.describe?.(selected)}
      />
      <ResultToolbar
        result={selected}
        backdrop={backdrop}
        onBackdrop={tool.isCutOut ? setBackdrop : null}
        isDeleting={isDeleting}
        onDelete={() => onDelete(selected.imageId)}
      />
      <NextSteps
        // Another result is not being opened.
        key={selected.imageId}
        tool={tool}
        result={selected}
        isEdited={selected.imageId === props.editedId}
        onContinue={props.onContinue}
      />
      <ResultStrip results={results} selectedId={selected.imageId} onSelect={onSelect} />
    </div>
  );
}
