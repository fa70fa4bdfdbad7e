import { readFileSync } from 'node:fs';
import { render } from '@testing-library/react';
import { expect, test } from 'vitest';
import { StartPage } from './start-page';

test('index.html shows the start page before any script has come', () => {
  const page = new DOMParser().parseFromString(readFileSync('index.html', 'utf8'), 'text/html');
  const { container } = render(<StartPage />);
  expect(shapeOf(page.querySelector('#root'))).toEqual(shapeOf(container));
});

/** What an element shows: its parts without the room between them. */
function shapeOf(element: Element | null): unknown {
  return Array.from(element?.childNodes ?? [])
    .map((node) => {
      if (!(node instanceof Element)) return node.textContent?.trim();
      const attributes = Array.from(node.attributes).map(({ name, value }) => `${name}=${value}`);
      return { name: node.localName, attributes: attributes.sort(), parts: shapeOf(node) };
    })
    .filter(Boolean);
}
