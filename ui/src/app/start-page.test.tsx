import { readFileSync } from 'node:fs';
import { render } from '@testing-library/react';
import { expect, test } from 'vitest';
import { StartPage } from './start-page';

test('index.html contains the start page', () => {
  const page = new DOMParser().parseFromString(readFileSync('index.html', 'utf8'), 'text/html');
  const { container } = render(<StartPage />);
  expect(structureOf(page.querySelector('#root'))).toEqual(structureOf(container));
});

/** The structure of an element, without whitespace between its children. */
function structureOf(element: Element | null): unknown {
  return Array.from(element?.childNodes ?? [])
    .map((node) => {
      if (!(node instanceof Element)) return node.textContent?.trim();
      const attributes = Array.from(node.attributes).map(({ name, value }) => `${name}=${value}`);
      return { name: node.localName, attributes: attributes.sort(), children: structureOf(node) };
    })
    .filter(Boolean);
}
