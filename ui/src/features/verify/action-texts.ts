import { type Message, msg } from '@/lib/translate';

/** The actions of the C2PA's specification, in words. */
const actions = new Map<string, Message>([
  ['c2pa.opened', msg('Opened a picture')],
  ['c2pa.created', msg('Created the picture')],
  ['c2pa.edited', msg('Edited')],
  ['c2pa.edited.metadata', msg('Changed the metadata')],
  ['c2pa.resized', msg('Resized')],
  ['c2pa.cropped', msg('Cropped')],
  ['c2pa.orientation', msg('Rotated or flipped')],
  ['c2pa.adjustedColor', msg('Adjusted colors')],
  ['c2pa.color_adjustments', msg('Adjusted colors')],
  ['c2pa.enhanced', msg('Enhanced the picture')],
  ['c2pa.filtered', msg('Applied a filter')],
  ['c2pa.drawing', msg('Drew on the picture')],
  ['c2pa.addedText', msg('Added text')],
  ['c2pa.placed', msg('Placed a picture in it')],
  ['c2pa.removed', msg('Removed a picture from it')],
  ['c2pa.deleted', msg('Deleted a part')],
  ['c2pa.redacted', msg('Removed details from its credentials')],
  ['c2pa.watermarked', msg('Added an invisible watermark')],
  ['c2pa.converted', msg('Saved in another format')],
  ['c2pa.transcoded', msg('Saved in another format')],
  ['c2pa.repackaged', msg('Repackaged')],
  ['c2pa.published', msg('Published')],
  ['c2pa.unknown', msg('An unknown change')],
]);

/** The name of an action in words; null for an unknown action. */
export const actionText = (action: string): Message | null => actions.get(action) ?? null;
