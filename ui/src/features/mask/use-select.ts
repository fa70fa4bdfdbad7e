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

/** The API answers within 10 seconds. A run waits for the selection, so a dead connection must not block it. */
const MAX_ANSWER_MS = 30_000;
const noClicks: Clicks = { positive: [], negative: [] };

/** Selects the clicked object and marks it. */
export function useSelect(image: EditedPicture, control: ViewControl, mark: (area: Area) => void) {
  const selections = useMaskStore(({ selections }) => selections);

  // Leaving the picture ends the wait.
  // biome-ignore lint/correctness/useExhaustiveDependencies: runs for each picture.
  useEffect(() => () => void giveUp(pending()), [image.key]);

  async function send(clicks: Clicks, { erases = false, contains = [] as Clicks[] } = {}) {
    const own: Selection = { clicks, erases, contains, request: new AbortController() };
    const limit = setTimeout(() => own.request.abort(), MAX_ANSWER_MS);
    setPending([...pending(), own]);
    try {
      const { spans } = await selectArea(image, clicks, own.request.signal);
      settle(own, spans);
    } catch (error) {
      if (pending().includes(own)) notifyError(reasonOf(error));
      settle(own, null);
    } finally {
      clearTimeout(limit);
    }
  }

  /** Marks what is selected in the order of the clicks; null is a selection that failed. */
  function settle(own: Selection, spans: number[] | null) {
    // It may be canceled, or a later one that contains it was faster.
    if (!pending().includes(own)) return;
    if (spans) giveUp(pending().filter(({ clicks }) => own.contains.includes(clicks)));
    const waiting = pending().map((one) => (one === own ? { ...own, spans } : one));
    for (let first = waiting[0]; first?.spans !== undefined; first = waiting[0]) {
      waiting.shift();
      if (first.spans) mark(areaOf(first, first.spans));
    }
    setPending(waiting);
  }

  /** The selection that the next click continues: the last one on its way or, if there is none, the last one made. */
  function current(): Pick<Selection, 'clicks' | 'contains'> | null {
    const last = pending().at(-1);
    if (last) return last.erases ? null : last;
    const clicks = shownClicks(image.key);
    return clicks && { clicks, contains: [] };
  }

  function pick(picked: Picked) {
    const takesAway = picked.takesAway !== useMaskStore.getState().takesAway;
    if ('box' in picked) {
      const box = boxIn(image, control, picked.box);
      if (box) send({ positive: [], negative: [], box }, { erases: takesAway });
      return;
    }
    const at = pointIn(image, control, picked.at);
    if (!at) return;
    const last = current();
    // There is no selection to correct: removes the area from the marks of the brush or an earlier selection.
    const erases = takesAway && !last;
    const { positive, negative, ...rest } = (erases ? pending().at(-1) : last)?.clicks ?? noClicks;
    // A double click is one click.
    if ((takesAway && !erases ? negative : positive).some(({ x, y }) => x === at.x && y === at.y)) return;
    if (erases) return send({ positive: [at], negative: [] }, { erases });
    const clicks = takesAway
      ? { ...rest, positive, negative: [...negative, at] }
      : { ...rest, positive: [...positive, at], negative };
    send(clicks, { contains: last ? [...last.contains, last.clicks] : [] });
  }

  function areaOf({ clicks, erases, contains }: Selection, spans: number[]): Area {
    // A stroke or an undo may have come in between.
    const shown = shownClicks(image.key);
    const refines = shown !== null && contains.includes(shown);
    return { kind: 'area', spans, clicks, ...(erases && { erases }), ...(refines && { refines }) };
  }

  return {
    pick,
    selectSubject: () => send({ positive: [], negative: [], subject: true }),
    /** Gives up the last selection on its way. Returns false if there is none. */
    cancel: () => giveUp(pending().slice(-1)),
    pending: selections.length > 0 ? allClicks(selections) : null,
    isSelecting: selections.length > 0,
  };
}

/** The gestures are created once: a click must see the one before it. */
const pending = () => useMaskStore.getState().selections;
const setPending = (selections: Selection[]) => useMaskStore.setState({ selections });

function giveUp(given: Selection[]): boolean {
  for (const { request } of given) request.abort();
  setPending(pending().filter((one) => !given.includes(one)));
  return given.length > 0;
}

/** The points of all selections on their way, each once. */
function allClicks(selections: Selection[]): Clicks {
  const contained = selections.flatMap(({ contains }) => contains);
  const latest = selections.map(({ clicks }) => clicks).filter((clicks) => !contained.includes(clicks));
  return {
    positive: latest.flatMap(({ positive }) => positive),
    negative: latest.flatMap(({ negative }) => negative),
  };
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
