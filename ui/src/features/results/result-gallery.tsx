import { type ReactNode, Suspense, useState } from 'react';
import { Icon } from '@/components/icon';
import { lazyWithRetry } from '@/components/lazy-with-retry';
import { PictureBox } from '@/components/picture-box';
import type { Tool } from '@/features/catalog/tool';
import { backgroundCss } from '@/features/finish/look';
import { useFinish } from '@/features/finish/use-finish';
import type { Image, Result, ResultItem } from '@/lib/api-types';
import { t } from '@/lib/translate';
import { finishedPictureOf, touchUpOf } from './finished-picture';
import { NextSteps } from './next-steps';
import { ResultPreview, type View } from './result-preview';
import { ResultStrip } from './result-strip';
import { ResultToolbar } from './result-toolbar';

const LeaveGuard = lazyWithRetry(() => import('@/features/finish/leave-guard'), null);

type ResultGalleryProps = {
  results: ResultItem[];
  original: Image;
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
  /** The result that this page is already editing. */
  editedId?: string | null | undefined;
};

export function ResultGallery(props: ResultGalleryProps) {
  const { results, original, tool, selectedId, onSelect, onDelete, isDeleting } = props;
  const { empty, progress } = props;
  const [view, setView] = useState<View>('result');
  const finish = useFinish();
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
              <p className="font-semibold">{t('No images to show')}</p>
              <p className="text-sm text-soft">{empty}</p>
            </div>
          )
        }
      >
        {progress && (
          <img
            src={original.previewUrl ?? original.url}
            alt=""
            className="absolute inset-0 size-full opacity-30 grayscale"
          />
        )}
      </PictureBox>
    );
  }
  return (
    <div className="finishing-gallery grid grid-cols-1 gap-4">
      {finish.isUnsavedIn(results) && (
        <Suspense>
          <LeaveGuard />
        </Suspense>
      )}
      <ResultPreview
        result={selected}
        alt={t(tool.texts.result)}
        original={original}
        view={view}
        onView={(next) => {
          setView(next);
          finish.setTouchingUp(false);
        }}
        background={backgroundCss(finish.look.background)}
        finished={
          tool.isCutout
            ? finishedPictureOf(finish, selected, original, t(tool.texts.result), () => setView('result'))
            : undefined
        }
        editor={tool.isCutout && touchUpOf(finish, selected, original)}
        progress={progress}
        note={props.describe?.(selected)}
      />
      <ResultStrip results={results} selectedId={selected.imageId} onSelect={onSelect} />
      <ResultToolbar
        result={selected}
        finish={tool.isCutout ? finish : null}
        isDeleting={isDeleting}
        onDelete={() => {
          finish.setTouchingUp(false);
          onDelete(selected.imageId);
        }}
      />
      <NextSteps
        // Another result is not being opened.
        key={selected.imageId}
        tool={tool}
        result={selected}
        isEdited={selected.imageId === props.editedId}
        onContinue={props.onContinue}
      />
    </div>
  );
}
