import { readFileSync } from 'node:fs';
import { formatter } from '@lingui/format-po';
import { compileMessage } from '@lingui/message-utils/compileMessage';
import type { Plugin } from 'vite';
import { type Catalogue, type Forms, keyOf } from '../src/lib/translate.ts';
import { firstModules, readSources } from './first-modules.ts';

/**
 * Compiles imported PO files to modules with a catalogue as the page reads it: texts by the key of their English text,
 * plurals as one text for each form. So the page needs neither a parser nor the English texts a second time. A file is two
 * modules: `de.po` has the texts of the first modules, and `de.po?later` the others.
 */
export function catalogues(): Plugin {
  let modules: Set<string>;
  return {
    name: 'catalogues',
    buildStart() {
      modules = firstModules(readSources());
    },
    transform: {
      filter: { id: /\.po(\?later)?$/ },
      handler(_, id) {
        const [path = '', part = 'first'] = id.split('?');
        const parts = compileCatalogue(readFileSync(path, 'utf8'), modules);
        return { code: `export default ${JSON.stringify(parts[part as keyof typeof parts])}`, map: null };
      },
    },
  };
}

type Entry = {
  message?: string;
  translation?: string;
  obsolete?: boolean;
  /** The files with the text. */
  origin?: [path: string, line?: number][];
};

/** Returns the texts of a PO file and their translations. */
export function entriesOf(text: string): Entry[] {
  // The parser needs no context, but its type asks for one.
  const context = { locale: null, sourceLocale: 'en', filename: '' };
  return Object.values(formatter().parse(text, context) as Record<string, Entry>);
}

/**
 * Compiles a PO file to the texts that a first module contains, and the later ones. Leaves out what is not translated: the
 * page shows that in English.
 */
export function compileCatalogue(text: string, modules: Set<string>): { first: Catalogue; later: Catalogue } {
  const first: Catalogue = {};
  const later: Catalogue = {};
  for (const { message, translation, obsolete, origin = [] } of entriesOf(text)) {
    if (!message || !translation || obsolete) continue;
    const english = compileText(message);
    const key = keyOf(typeof english === 'string' ? english : english.other);
    if (key in first || key in later) {
      throw new Error(`catalogues: the key of “${message}” is taken; change the text`);
    }
    const part = origin.some(([path]) => modules.has(path)) ? first : later;
    part[key] = compileText(translation);
  }
  return { first, later };
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
