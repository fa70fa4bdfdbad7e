import { createElement, Fragment, type ReactNode } from 'react';
import { find, type Placeholders } from './translate';

type Tags<Text> = Text extends `${string}</${infer Name}>${infer Rest}` ? Name | Tags<Rest> : never;

type Parts<Text> = Record<Placeholders<Text>, ReactNode> &
  Record<Tags<Text>, (children: string) => ReactNode>;

/** Returns a translated text with elements in it, for `<link>…</link>` and `{name}`. */
export function rich<const Text extends string>(text: Text, parts: Parts<Text>): ReactNode {
  const values = parts as Record<string, ReactNode | ((children: string) => ReactNode)>;
  // Four items for each match: the text before it, the tag and what it contains, or the placeholder.
  const pieces = (find(text) as string).split(/<(\w+)>(.*?)<\/\1>|{(\w+)}/);
  const nodes = pieces.map((piece, index) => {
    if (index % 4 === 0) return piece;
    const value = values[piece];
    if (index % 4 === 1 && typeof value === 'function') return value(pieces[index + 1] ?? '');
    return index % 4 === 3 ? (value as ReactNode) : null;
  });
  return createElement(Fragment, null, ...nodes);
}
