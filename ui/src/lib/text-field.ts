const TEXT_FIELD =
  'textarea, input:not([type=radio], [type=checkbox], [type=range], [type=color], [type=file])';

/** Whether the element takes text: it then has its own undo, takes pasted text, and keeps the focus. */
export function isTextField(target: EventTarget | null): boolean {
  return target instanceof Element && target.matches(TEXT_FIELD);
}
