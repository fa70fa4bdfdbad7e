import { useQueryClient } from '@tanstack/react-query';
import { type ReactNode, useEffect, useEffectEvent, useState } from 'react';
import { Spinner } from '@/components/spinner';
import type { Look } from '@/features/finish/look';
import type { TouchUp } from '@/features/finish/use-finish';
import type { Result } from '@/lib/api-types';
import { failureText } from '@/lib/failure-text';
import { readImageSize } from '@/lib/image-size';
import { notifyError } from '@/lib/notify';
import { t } from '@/lib/translate';
import { resultFile } from './result-file';

/** A slider sends many values before it rests. */
const REST_MS = 400;

export type EnlargedPicture = { url: string; width: number; height: number };

type RenderedPictureProps = {
  result: Result;
  look: Look;
  strokes: TouchUp['strokes'];
  children: (picture: EnlargedPicture) => ReactNode;
  onFailed: () => void;
};

/** Shows the file that a download of the finished cutout would be. */
export default function RenderedPicture(props: RenderedPictureProps) {
  const { result, look, strokes, children, onFailed } = props;
  const queryClient = useQueryClient();
  const [rendered, setRendered] = useState<EnlargedPicture | null>(null);
  const [isRendering, setRendering] = useState(true);
  const render = useEffectEvent((signal: AbortSignal) =>
    resultFile(queryClient, result, look, strokes, 'png', signal),
  );
  const fail = useEffectEvent((error: Error) => {
    notifyError(failureText(error));
    onFailed();
  });

  // biome-ignore lint/correctness/useExhaustiveDependencies: everything that changes the file.
  useEffect(() => {
    const stop = new AbortController();
    const { signal } = stop;
    setRendering(true);
    const timer = setTimeout(async () => {
      try {
        const url = URL.createObjectURL(await render(signal));
        const { x: width, y: height } = await readImageSize(url);
        if (signal.aborted) return URL.revokeObjectURL(url);
        setRendered({ url, width, height });
        setRendering(false);
      } catch (error) {
        if (!signal.aborted) fail(error as Error);
      }
    }, REST_MS);
    return () => {
      stop.abort();
      clearTimeout(timer);
    };
  }, [result.imageId, look, strokes]);

  useEffect(() => () => void (rendered && URL.revokeObjectURL(rendered.url)), [rendered]);

  return (
    <>
      {rendered && children(rendered)}
      {isRendering && (
        <p className="absolute inset-x-3 top-16 mx-auto flex w-fit items-center gap-2 rounded-md bg-surface px-3 py-2 text-sm shadow-raised">
          <Spinner label={t('Rendering in full size…')} />
        </p>
      )}
    </>
  );
}
