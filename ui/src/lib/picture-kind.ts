import type { Config } from './api-types';

/** Browsers know few types of these, and none on some systems. */
const HEIF = /^image\/(heic|heif|avif)$|\.(heic|heif|hif|avif)$/i;
const AVIF = /^image\/avif$|\.avif$/i;
const RAW = /\.(3fr|arw|cr2|cr3|crw|dng|erf|iiq|mrw|nef|nrw|orf|pef|raf|rw2|sr2|srw|x3f)$/i;

type Formats = Pick<Config['features'], 'heic' | 'avif'>;

/** The types that a file input offers where these formats are read. If HEIC is not among them, iOS converts it to JPEG. */
export const pictureTypes = ({ heic, avif }: Formats) =>
  `image/*${heic ? ',.heic,.heif,.hif' : ''}${avif ? ',.avif' : ''}`;

/** Whether a file is meant to be a picture. */
export const isPicture = ({ type, name }: File) =>
  type.startsWith('image/') || HEIF.test(name) || RAW.test(name);

/** Whether it is a camera's raw photo, by its name. */
export const isRaw = ({ name }: File) => RAW.test(name);

/** Whether it is HEIC or AVIF, which most servers read, and not every browser. */
export const isHeif = ({ type, name }: File) => HEIF.test(type) || HEIF.test(name);

/** The format of such a file that is not among these; null if it is. */
export function missingFormat(file: File, { heic, avif }: Formats): string | null {
  if (!isHeif(file)) return null;
  if (AVIF.test(file.type) || AVIF.test(file.name)) return avif ? null : 'AVIF';
  return heic ? null : 'HEIC';
}

// Some systems use old names for JPEG.
const COMMON = /^image\/(png|jpe?g|pjpeg|webp)$/;

/** Whether it is PNG, JPEG or WebP, which every browser and every part of the server reads. */
export const isCommon = ({ type }: File) => COMMON.test(type);
