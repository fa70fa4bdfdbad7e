import { type Message, msg } from '@/lib/translate';

/** What Retouch itself writes into pictures (credentials/src/statement.rs and parent.rs). */
const texts = new Map<string, Message>([
  ['Uploaded picture', msg('Uploaded picture')],
  ['Result', msg('Result')],
  ['Removed the background', msg('Removed the background')],
  ['Upscaled 2 times', msg('Upscaled 2 times')],
  ['Upscaled 4 times', msg('Upscaled 4 times')],
  ['Repainted an area from a description', msg('Repainted an area from a description')],
  ['Restored an area', msg('Restored an area')],
  ['Removed an object', msg('Removed an object')],
  ['Enhanced an area', msg('Enhanced an area')],
  ['Added an object from a description', msg('Added an object from a description')],
  [
    'Finished with a background, a shadow, a crop, a touch-up, or another size',
    msg('Finished with a background, a shadow, a crop, a touch-up, or another size'),
  ],
]);

/**
 * A text that Retouch writes, to be translated; null for any other. Not `dataText`: a foreign file could contain a text
 * whose hash is that of another text.
 */
export const ownText = (text: string): Message | null => texts.get(text) ?? null;
