import type { ImageSize } from '@/lib/image-size';

/** The picture that the editor shows and the next run changes: an image, or the result of a run. */
export type EditedPicture = ImageSize & {
  /** Names its draft. */
  key: string;
  url: string;
  /** A smaller copy; null if the picture is small. */
  previewUrl: string | null;
  /** The image to send to the API; made the first time if the picture is a result. */
  imageId: (signal?: AbortSignal) => Promise<string>;
};

/** Another state of the edited picture, to compare it with. */
export type ComparedPicture = {
  url: string;
  previewUrl: string | null;
  /** Whether it is the picture from before the last fix. Otherwise it is the result of a run. */
  isBefore: boolean;
};

/** What Undo and Redo do beyond the first and the last stroke; null where the history ends. */
export type RunHistory = { undo: (() => void) | null; redo: (() => void) | null };
