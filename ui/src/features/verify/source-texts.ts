import { type Message, msg } from '@/lib/translate';

/** The IPTC's terms for where the pixels of a picture come from, in words. */
const sources = new Map<string, Message>([
  ['trainedAlgorithmicMedia', msg('AI made this picture')],
  ['compositeWithTrainedAlgorithmicMedia', msg('AI made parts of this picture')],
  ['algorithmicMedia', msg('Software made this picture without AI')],
  ['compositeSynthetic', msg('Software made parts of this picture')],
  ['algorithmicallyEnhanced', msg('Software enhanced this picture without generating content')],
  ['dataDrivenMedia', msg('Software drew this picture from data')],
  ['digitalCapture', msg('A camera took this picture')],
  ['computationalCapture', msg('A camera computed this picture from several shots')],
  ['compositeCapture', msg('Put together from several photos')],
  ['composite', msg('Put together from several pictures')],
  ['negativeFilm', msg('Scanned from film')],
  ['positiveFilm', msg('Scanned from film')],
  ['print', msg('Scanned from a print')],
  ['humanEdits', msg('A person edited this picture')],
  ['minorHumanEdits', msg('A person edited this picture')],
  ['digitalCreation', msg('A person made this picture on a computer')],
  ['digitalArt', msg('A person made this picture on a computer')],
  ['screenCapture', msg('A screenshot')],
  ['virtualRecording', msg('A recording of a virtual scene')],
]);

/** The name of a term, at the end of its URI. */
export const termOf = (uri: string) => uri.slice(uri.lastIndexOf('/') + 1);

/** Says where the pixels come from; null for a term that the page does not know. */
export const sourceText = (uri: string): Message | null => sources.get(termOf(uri)) ?? null;
