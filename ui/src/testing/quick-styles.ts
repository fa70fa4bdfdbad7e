/** The attributes that decide about `display` while only the browser's own style sheet is loaded. */
const DECISIVE = ['hidden', 'open', 'type', 'style'];
/** The initial values of properties that only inline styles set here, of an element or around it. */
const INHERITED = { visibility: 'visible', pointerEvents: 'auto' };

/**
 * Makes a few computed styles quick. Queries by role or name, and clicks, read them of every element, and jsdom matches
 * its whole style sheet for each, which took two fifths of the tests' time. Tests do not load the page's style sheet, so
 * elements with the same name and decisive attributes in the same parent are displayed alike.
 */
export function quickenStyles() {
  const compute = window.getComputedStyle.bind(window);
  const known = new Map<string, string>();

  function displayOf(element: Element): string {
    const attributes = DECISIVE.map((name) => element.getAttribute(name));
    const key = JSON.stringify([element.localName, element.parentElement?.localName, attributes]);
    const display = known.get(key) ?? compute(element).display;
    known.set(key, display);
    return display;
  }

  function quick(element: Element, name: unknown): string | undefined {
    if (name === 'display') return displayOf(element);
    const initial = INHERITED[name as keyof typeof INHERITED];
    return element.closest('[style*="visibility"], [style*="pointer-events"]') ? undefined : initial;
  }

  window.getComputedStyle = (element, pseudo) =>
    new Proxy({} as CSSStyleDeclaration, {
      get(_, name) {
        if (name === 'getPropertyValue')
          return (property: string) =>
            quick(element, property) ?? compute(element, pseudo).getPropertyValue(property);
        return quick(element, name) ?? Reflect.get(compute(element, pseudo), name);
      },
    });
}
