import { useEffect } from 'react';
import type { ViewControl } from '@/components/pan-zoom/use-view';
import { type Point, toImage } from '@/components/pan-zoom/view';
import { ApiError } from '@/lib/api-client';
import { problemText } from '@/lib/failure-text';
import type { ImageSize } from '@/lib/image-size';
import { notifyError } from '@/lib/notify';
import { t } from '@/lib/translate';
import type { EditedPicture } from './edited-picture';
import type { Picked } from './gestures';
import { type Area, type Clicks, type ImagePoint, lastClicks } from './marks';
import { type Selection, useMaskStore } from './mask-store';
import { selectArea } from './select-area';

type Step = Omit<Selection, 'request'>;

/** The API answers within 10 seconds. A run waits for the selection, so a dead connection must not block it. */
const MAX_ANSWER_MS = 30_000;

/** Selects the clicked object and marks it. */
export function useSelect(image: EditedPicture, control: ViewControl, mark: (area: Area) => void) {
  const pending = useMaskStore(({ selection }) => selection);

  // Leaving the picture ends the wait.
  // biome-ignore lint/correctness/useExhaustiveDependencies: runs for each picture.
  useEffect(() => () => void cancel(), [image.key]);

  async function send(step: Step) {
    // It contains the clicks of the request before.
    cancel();
    const own: Selection = { ...step, request: new AbortController() };
    const limit = setTimeout(() => own.request.abort(), MAX_ANSWER_MS);
    setLatest(own);
    try {
      const { spans } = await selectArea(image, step.clicks, own.request.signal);
      if (latest() === own) mark(areaOf(step, spans));
    } catch (error) {
      if (latest() === own) notifyError(reasonOf(error));
    } finally {
      clearTimeout(limit);
      if (latest() === own) setLatest(null);
    }
  }

  /** Clicks of the selection that is on its way or was made last; null if the next click starts a new one. */
  function current(): Step | null {
    const onItsWay = latest();
    if (onItsWay) return onItsWay.erases ? null : onItsWay;
    const clicks = shownClicks(image.key);
    return clicks && { clicks, refines: true };
  }

  function pick(picked: Picked) {
    const takesAway = picked.takesAway !== useMaskStore.getState().takesAway;
    if ('box' in picked) {
      const box = boxIn(image, control, picked.box);
      if (box) send({ clicks: { positive: [], negative: [], box }, erases: takesAway });
      return;
    }
    const at = pointIn(image, control, picked.at);
    if (!at) return;
    const step = current();
    const { positive, negative, ...rest } = step?.clicks ?? { positive: [], negative: [] };
    if (!takesAway) {
      send({ ...step, clicks: { ...rest, positive: [...positive, at], negative } });
    } else if (step) {
      send({ ...step, clicks: { ...rest, positive, negative: [...negative, at] } });
    } else {
      // There is no selection to correct: removes the area from the marks of the brush or an earlier selection.
      send({ clicks: { positive: [at], negative: [] }, erases: true });
    }
  }

  function areaOf({ clicks, erases, refines }: Step, spans: number[]): Area {
    // A stroke or an undo may have come in between.
    const canRefine = refines && shownClicks(image.key) !== null;
    return { kind: 'area', spans, clicks, ...(erases && { erases }), ...(canRefine && { refines }) };
  }

  return {
    pick,
    selectSubject: () => send({ clicks: { positive: [], negative: [], subject: true } }),
    /** Gives up the selection on its way. Returns false if there is none. */
    cancel,
    pending: pending?.clicks ?? null,
    isSelecting: pending !== null,
  };
}

/** The gestures are created once: a click must see the one before it. */
const latest = () => useMaskStore.getState().selection;
const setLatest = (selection: Selection | null) => useMaskStore.setState({ selection });

function cancel(): boolean {
  const onItsWay = latest();
  if (!onItsWay) return false;
  onItsWay.request.abort();
  setLatest(null);
  return true;
}

/** The clicks of the last mark, unless a run was started with it. */
function shownClicks(picture: string): Clicks | null {
  const draft = useMaskStore.getState().drafts[picture];
  return draft && !draft.isSubmitted ? lastClicks(draft.done) : null;
}

function reasonOf(error: unknown): string {
  if (error instanceof ApiError && error.detail) return problemText(error);
  return t('Failed to select, please try again');
}

/** Returns the pixel under a point of the frame; null outside the image. */
function pointIn(image: ImageSize, { view }: ViewControl, point: Point): ImagePoint | null {
  const { x, y } = toImage(view, point);
  const isInside = x >= 0 && y >= 0 && x < image.x && y < image.y;
  return isInside ? { x: Math.floor(x), y: Math.floor(y) } : null;
}

/** Returns the pixels that a rectangle of the frame touches; null if it misses the image. */
function boxIn(image: ImageSize, { view }: ViewControl, box: Point & { width: number; height: number }) {
  const first = toImage(view, box);
  const last = toImage(view, { x: box.x + box.width, y: box.y + box.height });
  const [left, top] = [Math.max(0, Math.floor(first.x)), Math.max(0, Math.floor(first.y))];
  const [right, bottom] = [Math.min(image.x, Math.ceil(last.x)), Math.min(image.y, Math.ceil(last.y))];
  return right > left && bottom > top ? { x: left, y: top, width: right - left, height: bottom - top } : null;
}
