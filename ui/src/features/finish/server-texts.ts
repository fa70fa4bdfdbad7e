import { msg } from '@/lib/translate';

/** Why the API cannot finish a cutout, as in `src/languages/server-texts.ts`. */
export const sentences = [
  // pixels/src/finish/error.rs
  msg('Nothing is left of the subject, so there is nothing to crop to.'),
  msg(
    'The crop would be {0} × {1} pixels; the limit is {2} pixels. Choose a smaller margin or another aspect ratio.',
  ),
  msg('The picture would be {0} × {1} pixels; this format holds at most {2} per side. Choose PNG.'),
];
