import { readFileSync } from 'node:fs';
import { formatter } from '@lingui/format-po';
import { compileMessage } from '@lingui/message-utils/compileMessage';
import type { Plugin } from 'vite';
import { type Catalogue, type Forms, keyOf } from '../src/lib/translate.ts';

/**
 * Compiles imported PO files to modules with a catalogue as the page reads it: texts by the key of their English text,
 * plurals as one text for each form. So the page needs neither a parser nor the English texts a second time.
 */
export function catalogues(): Plugin {
  return {
    name: 'catalogues',
    transform: {
      filter: { id: /\.po$/ },
      handler(_, id) {
        const catalogue = compileCatalogue(readFileSync(id, 'utf8'));
        return { code: `export default ${JSON.stringify(catalogue)}`, map: null };
      },
    },
  };
}

type Entry = { message?: string; translation?: string; obsolete?: boolean };

/** Returns the texts of a PO file and their translations. */
export function entriesOf(text: string): Entry[] {
  // The parser needs no context, but its type asks for one.
  const context = { locale: null, sourceLocale: 'en', filename: '' };
  return Object.values(formatter().parse(text, context) as Record<string, Entry>);
}

/** Compiles a PO file. Leaves out what is not translated: the page shows that in English. */
export function compileCatalogue(text: string): Catalogue {
  const catalogue: Catalogue = {};
  for (const { message, translation, obsolete } of entriesOf(text)) {
    if (!message || !translation || obsolete) continue;
    const english = compileText(message);
    const key = keyOf(typeof english === 'string' ? english : english.other);
    if (key in catalogue) throw new Error(`catalogues: the key of “${message}” is taken; change the text`);
    catalogue[key] = compileText(translation);
  }
  return catalogue;
}

/** Turns Lingui's tokens of an ICU text back into the text, or into a text for each form of its plural. */
export function compileText(icu: string): string | Forms {
  const tokens = compileMessage(icu);
  const [first] = tokens;
  if (Array.isArray(first) && first[1] === 'plural' && tokens.length === 1) {
    const { offset: _, ...forms } = first[2] as Record<string, unknown>;
    return Object.fromEntries(
      Object.entries(forms).map(([form, text]) => [
        form,
        typeof text === 'string' ? text : textOf(text as Token[]),
      ]),
    ) as Forms;
  }
  return textOf(tokens as Token[]);
}

type Token = string | [name: string, ...rest: unknown[]];

function textOf(tokens: Token[]): string {
  return tokens
    .map((token) => {
      if (typeof token === 'string') return token;
      if (token.length > 1) throw new Error(`catalogues: “${token[1]}” is not supported inside a text`);
      return `{${token[0]}}`;
    })
    .join('');
}
