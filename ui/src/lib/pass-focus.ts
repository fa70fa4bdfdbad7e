/**
 * A ref for an element that other content replaces. If the keyboard focus is in it then, the section around it receives
 * the focus; browsers would move it to the top of the page. An element of another type or key must follow: React would
 * use this one again.
 */
export function passFocus(element: HTMLElement | null) {
  // React calls this while the element is still in the page.
  return () => {
    const section = element?.parentElement?.closest<HTMLElement>('section, main');
    if (!section || !element?.contains(document.activeElement)) return;
    section.tabIndex = -1;
    section.focus({ preventScroll: true });
  };
}
