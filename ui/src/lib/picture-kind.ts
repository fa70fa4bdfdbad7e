import { problemText } from './failure-text';

/** Browsers know few types of these, and none on some systems. */
const HEIF = /^image\/(heic|heif|avif)$|\.(heic|heif|hif|avif)$/i;
const RAW = /\.(3fr|arw|cr2|cr3|crw|dng|erf|iiq|mrw|nef|nrw|orf|pef|raf|rw2|sr2|srw|x3f)$/i;
// Some systems use old names for JPEG.
const COMMON = /^image\/(png|jpe?g|pjpeg|webp)$/;

/** What a file input offers. */
export const pictureTypes = 'image/*,.heic,.heif,.hif,.avif';

/** Whether somebody means a file as a picture. */
export const isPicture = ({ type, name }: File) =>
  type.startsWith('image/') || HEIF.test(name) || RAW.test(name);

/** Whether it is HEIC or AVIF, which the server reads, and not every browser. */
export const isHeif = ({ type, name }: File) => HEIF.test(type || name);

/** Why the server would refuse a picture of this kind: a sentence, or '' if it has no name. Null if it takes it. */
export function kindProblem(file: File): string | null {
  if (COMMON.test(file.type) || isHeif(file)) return null;
  if (RAW.test(file.name)) {
    const detail = 'This is a RAW photo. Export it as JPEG or PNG and upload that.';
    return problemText({ detail, code: 'image_raw' });
  }
  if (file.type !== 'image/svg+xml') return '';
  const detail = 'This is a drawing (SVG). Export it as PNG and upload that.';
  return problemText({ detail, code: 'image_drawing' });
}
