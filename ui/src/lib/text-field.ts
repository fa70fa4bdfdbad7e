const TEXT_FIELD =
  'textarea, input:not([type=radio], [type=checkbox], [type=range], [type=color], [type=file])';

/** Whether somebody types there, which has its own undo, takes what is pasted, and keeps the focus. */
export function isTextField(target: EventTarget | null): boolean {
  return target instanceof Element && target.matches(TEXT_FIELD);
}
