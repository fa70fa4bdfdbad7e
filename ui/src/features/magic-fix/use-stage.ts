// Magic Fix continues in place: the result of a fix becomes the picture of the editor, and the next fix starts from it.
//
// A *stage* is one picture of such a series: an image, or a result that has not become an image yet. The address names
// it: `/magic/{image}`, or `/magic/{image}?result={result}` for a result of that image. A result becomes an image of its
// own only when the API needs one, for the next run or for a selection; so nobody collects images they did not use.
//
// Each stage has its draft (mask, prompt) in the mask store, under the id of the result even after it has become an
// image. The history across stages needs no list: backwards, `sourceImageId` and `madeFrom` know the stage before;
// forwards, the draft records where Undo came from. Going back and forth only changes the address, and costs nothing.
//
// A draft also records its run. Whenever the results contain that run's, the editor moves on to it: when the run ends
// here, and as well after a reload, a sleeping phone, or a visit to another page. A run that ends without a result is
// dropped from its draft, so that the next stroke continues the mask.

import { useQueryClient } from '@tanstack/react-query';
import { useEffect, useEffectEvent, useLayoutEffect, useMemo, useRef, useState } from 'react';
import { useNavigate, useSearchParams } from 'react-router';
import { magicFix } from '@/features/catalog/magic-fix';
import type { ComparedPicture, EditedPicture, RunHistory } from '@/features/mask/edited-picture';
import { continueDraft, draftActions, type PlaceOfResult, useDraft } from '@/features/mask/mask-store';
import { useResults } from '@/features/results/get-results';
import { imageFromResult } from '@/features/results/image-from-result';
import { followerOf } from '@/features/runs/run-follower';
import type { Image, Result } from '@/lib/api-types';
import { paths } from '@/lib/paths';
import { t } from '@/lib/translate';
import { dropEndedRuns } from './drop-ended-runs';
import { useSourceImage } from './source-image';

/** The draft of an image that was made from a result is the draft of that result. */
const keyOf = (image: Image) => image.madeFrom?.resultId ?? image.id;

export const urlsOf = ({ url, previewUrl }: Pick<Image, 'url' | 'previewUrl'>) => ({
  url,
  previewUrl: previewUrl ?? null,
});

/** The stage that the address names. `onArrive` gets the result of a run when the editor moves on to it. */
export function useStage(image: Image, onArrive: (result: Result) => void) {
  const queryClient = useQueryClient();
  const navigate = useNavigate();
  const [parameters] = useSearchParams();
  const resultId = parameters.get('result');
  const list = useResults(magicFix, image.id);
  const shown = list.data?.find(({ imageId }) => imageId === resultId);
  const source = useSourceImage(image);
  const key = resultId ?? keyOf(image);
  const { next, run } = useDraft(key);
  /** Announced to screen readers. */
  const [announcement, setAnnouncement] = useState('');
  /** The image that a result has become. */
  const [made, setMade] = useState<{ resultId: string; imageId: string } | null>(null);
  const isShown = useRef(false);

  // A user who has left this page stays where they are. A layout effect ends in the commit that removes the page.
  useLayoutEffect(() => {
    isShown.current = true;
    return () => {
      isShown.current = false;
    };
  }, []);

  function show({ imageId, resultId }: { imageId: string; resultId?: string }) {
    const search = resultId ? `?${new URLSearchParams({ result: resultId })}` : '';
    // Replaces the entry: Undo is the way back, and the browser's Back leaves the editor.
    void navigate(paths.magicImage(imageId) + search, {
      replace: true,
      preventScrollReset: true,
      state: { isInPlace: true },
    });
  }

  function goBack(before: Image, left: PlaceOfResult) {
    draftActions(keyOf(before)).comeBack(left);
    setAnnouncement(t('Back to the picture before the fix'));
    show({ imageId: before.id });
  }

  function goForward(place: PlaceOfResult) {
    setAnnouncement(t('The fixed picture again'));
    show(place);
  }

  const arrived = resultId ? undefined : list.data?.find(({ jobId }) => jobId === run?.jobId);
  const moveOn = useEffectEvent((result: Result) => {
    const place = { imageId: image.id, resultId: result.imageId };
    continueDraft(key, place);
    onArrive(result);
    show(place);
  });
  useEffect(() => {
    if (arrived) moveOn(arrived);
  }, [arrived]);

  const awaitedId = list.data && !arrived ? run?.jobId : undefined;
  useEffect(() => {
    const follower = followerOf(queryClient);
    follower.watchers.add(dropEndedRuns);
    // It may have ended before this page loaded.
    if (awaitedId) void follower.follow({ id: awaitedId, imageId: image.id, tool: magicFix.name });
  }, [queryClient, image.id, awaitedId]);

  // The result of the address has been deleted.
  const isGone = resultId !== null && list.data !== undefined && !shown;
  const leave = useEffectEvent(() => show({ imageId: image.id }));
  useEffect(() => {
    if (isGone) leave();
  }, [isGone]);

  const fixedFrom = image.madeFrom?.resultId ?? null;
  const before = shown ? image : source;
  const left = shown
    ? { imageId: image.id, resultId: shown.imageId }
    : source && fixedFrom && { imageId: source.id, resultId: fixedFrom };

  // The same object until the picture changes: the editor draws the mask for it, which takes long.
  const picture = useMemo(
    (): EditedPicture => ({
      key,
      ...urlsOf(shown ?? image),
      x: image.x,
      y: image.y,
      imageId: async (signal) => {
        if (!shown) return image.id;
        const { id } = await imageFromResult(queryClient, shown.imageId, signal);
        setMade({ resultId: shown.imageId, imageId: id });
        return id;
      },
    }),
    [queryClient, key, image, shown],
  );
  const runs: RunHistory = {
    undo: before && left ? () => goBack(before, left) : null,
    redo: next ? () => goForward(next) : null,
  };
  const compared: ComparedPicture | null = before ? { ...urlsOf(before), isBefore: true } : null;

  return {
    picture,
    compared,
    runs,
    /** Whether the picture is the result of a fix. */
    isFixed: shown !== undefined || image.madeFrom?.tool === 'magic-fix',
    /** The address names a result that is not known yet. */
    isLoading: resultId !== null && !list.data,
    /** The image that the result being edited has become, once this page knows it. */
    targetId: made && made.resultId === resultId ? made.imageId : null,
    /** The result that is being edited. */
    shown: shown ?? null,
    announcement,
    /** Edits a result of this image. */
    showResult: ({ imageId }: Result) => show({ imageId: image.id, resultId: imageId }),
    /** Follows the picture to the image that it has become. */
    showImage: (imageId: string) => {
      if (isShown.current && imageId !== image.id) show({ imageId });
    },
  };
}
