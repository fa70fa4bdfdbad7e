import { readFileSync } from 'node:fs';
import { describe, expect, test } from 'vitest';
import { languages } from '../src/lib/language';
import { keyOf } from '../src/lib/translate';
import { compileCatalogue, compileText, entriesOf } from './catalogues';
import { firstModules, readSources } from './first-modules';
import { straysOf, textsOf, textsOfData } from './texts';

const MODULES = readSources();
const SOURCES = [...MODULES]
  .filter(([path]) => path !== 'src/lib/translate.ts')
  .map(([path, code]) => ({ path, code }));

/** Legal texts are valid in their original language. */
const ENGLISH_ONLY = /^src\/features\/legal\/(contact|privacy|terms)\.tsx$/;

/** Each text with the files that contain it. */
const marked = new Map<string, Set<string>>();
for (const { path, code } of SOURCES) {
  for (const { message } of path.endsWith('.json') ? textsOfData(code) : textsOf(path, code)) {
    marked.set(message, (marked.get(message) ?? new Set()).add(path));
  }
}

const readCatalogue = (language: string) => readFileSync(`src/languages/${language}.po`, 'utf8');

const first = firstModules(MODULES);

test('no visible text is outside the catalogues', () => {
  const strays = SOURCES.filter(({ path }) => !path.endsWith('.json') && !ENGLISH_ONLY.test(path)).flatMap(
    ({ path, code }) => straysOf(path, code).map(({ line, why, text }) => `${path}:${line} ${why}: ${text}`),
  );
  expect(strays).toEqual([]);
});

describe('the check for texts outside the catalogues', () => {
  test.each([
    ['<p>Save</p>', 'Save'],
    ['<p>{isOn ? "On" : "Off"}</p>', 'On'],
    ['<img alt="A cat" />', 'A cat'],
    ['<Button label={"Delete " + name} />', 'Delete'],
    ['<Swatch name="Gradient" />', 'Gradient'],
    ['<HoldButton name={isOn ? t("On") : "Hold to see"} />', 'Hold to see'],
    ['notifyError("Failed to save")', 'Failed to save'],
    ['throw new UserError("Too large")', 'Too large'],
    ['const items = [{ title: "First" }]', 'First'],
    ['const title = t("Too early")', 't("Too early")'],
  ])('finds %s', (code, text) => {
    expect(straysOf('example.tsx', code).map((stray) => stray.text)).toContain(text);
  });

  test.each([
    '<p className="flex">{t("Save")}</p>',
    '<p>{isOn ? t("On") : t("Off")}</p>',
    '<Icon name="check" />',
    '<RadioOptions name="touch-up-tool" />',
    '<input name="Prompt" />',
    'const title = msg("Later")',
    'throw new Error("useConfig needs a ConfigContext above it")',
    '<b>2 × 3 px</b>',
  ])('accepts %s', (code) => {
    expect(straysOf('example.tsx', `function Example() { ${code} }`)).toEqual([]);
  });
});

describe.each(Object.keys(languages))('the catalogue %s', (language) => {
  const entries = entriesOf(readCatalogue(language));

  test('has exactly the texts of the code: otherwise run `npm run extract`', () => {
    const places = entries.map(({ message, origin }) => [message, new Set(origin?.map(([path]) => path))]);
    expect(new Map(places as [string, Set<string>][])).toEqual(marked);
    expect(entries.filter(({ obsolete }) => obsolete)).toEqual([]);
  });

  test('translates every text, with the same placeholders and tags', () => {
    const different = entries.filter(
      ({ message = '', translation = '' }) =>
        !translation || (!message.startsWith('code:') && partsOf(translation) !== partsOf(message)),
    );
    expect(different).toEqual([]);
  });

  test('has the forms of plurals that the language needs', () => {
    const forms = new Intl.PluralRules(language).resolvedOptions().pluralCategories.filter(isCommon);
    const wrong = entries.filter(({ translation = '' }) => {
      const text = compileText(translation);
      return typeof text === 'object' && forms.some((form) => !(form in text));
    });
    expect(wrong).toEqual([]);
  });

  // ICU reads a straight apostrophe as the start of a quotation.
  test('uses typographic apostrophes', () => {
    const straight = entries.filter(
      ({ message = '', translation = '' }) => translation.includes("'") && !message.includes("'"),
    );
    expect(straight).toEqual([]);
  });

  test('compiles to a key for each text, which is in one of its parts', () => {
    const parts = compileCatalogue(readCatalogue(language), first);
    const keys = [...Object.keys(parts.first), ...Object.keys(parts.later)];
    // Texts that differ only in the form for one have the same key, and the same translation.
    expect(keys.sort()).toEqual([...new Set(entries.map(({ message = '' }) => keyOfText(message)))].sort());
  });
});

describe('the parts of a catalogue', () => {
  const parts = compileCatalogue(readCatalogue('de'), first);

  test.each([
    ['a text that only Verify shows', 'What are Content Credentials?', 'later'],
    ['what the server says only about webhooks', 'Webhook not found', 'later'],
    ['what the server says anywhere', 'Image not found', 'first'],
    ['a text that the footer shows, besides Verify', 'Verify a picture', 'first'],
    ['a text that the menu shows, besides the account page', 'Account', 'first'],
    ['a text about data that other pages load ahead', 'Failed to load API keys', 'first'],
    ['a text in a part of a page that loads on demand', 'Leave without the touch-up?', 'first'],
  ] as const)('%s', (_, text, part) => {
    expect(marked.has(text)).toBe(true);
    expect(Object.keys(parts).filter((name) => keyOf(text) in parts[name as typeof part])).toEqual([part]);
  });
});

describe('first modules', () => {
  const find = (extra: Record<string, string>) => {
    const start = {
      'src/main.tsx': "import { start } from './app/start';",
      'src/languages/server-texts.ts': '',
    };
    const found = firstModules(new Map(Object.entries({ ...start, ...extra })));
    return [...found].filter((path) => path in extra);
  };

  test('are all that the page imports, also on demand and by way of others', () => {
    expect(
      find({
        'src/app/start.tsx': "import './styles.css';\nexport { page } from '@/app/page';",
        'src/app/page.ts': "import data from './data.json';\nexport const load = () => import('./part');",
        'src/app/data.json': '[]',
        'src/app/part.tsx': '',
        'src/app/unused.ts': '',
      }),
    ).toEqual(['src/app/start.tsx', 'src/app/page.ts', 'src/app/data.json', 'src/app/part.tsx']);
  });

  test('are not what loads with the later texts, unless others import it, too', () => {
    expect(
      find({
        'src/app/start.tsx':
          "withLaterTexts(() => import('./a'));\npageWithLaterTexts('/b', () => import('./b'));",
        'src/app/a.tsx': "import './only-a';",
        'src/app/only-a.tsx': '',
        'src/app/b.tsx': '',
      }),
    ).toEqual(['src/app/start.tsx']);
    expect(
      find({
        'src/app/start.tsx': "import './shared';\nwithLaterTexts(() => import('./a'));",
        'src/app/a.tsx': "import './shared';",
        'src/app/shared.tsx': '',
      }),
    ).toEqual(['src/app/start.tsx', 'src/app/shared.tsx']);
  });

  test('bring what the server says about their feature', () => {
    const texts = { 'src/a/server-texts.ts': '', 'src/b/server-texts.ts': '' };
    expect(find({ 'src/app/start.tsx': "import '@/a/page';", 'src/a/page.ts': '', ...texts })).toContain(
      'src/a/server-texts.ts',
    );
    expect(find({ 'src/app/start.tsx': '', ...texts })).toEqual(['src/app/start.tsx']);
  });
});

/** `many` is for a million in French, Portuguese and Spanish, which the page never counts to. */
const isCommon = (form: string) => form !== 'many';

function keyOfText(message: string): string {
  const text = compileText(message);
  return keyOf(typeof text === 'string' ? text : text.other);
}

/** The placeholders and tags of a text, of a plural once. */
function partsOf(text: string): string {
  const parts = text.match(/\{\w+\}|<\/?\w+>|\{count, plural,/g) ?? [];
  return [...new Set(parts)].sort().join(' ');
}
