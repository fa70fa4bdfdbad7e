import { readdirSync, readFileSync } from 'node:fs';
import { describe, expect, test } from 'vitest';
import { languages } from '../src/lib/language';
import { keyOf } from '../src/lib/translate';
import { compileCatalogue, compileText, entriesOf } from './catalogues';
import { straysOf, textsOf, textsOfData } from './texts';

const SOURCES = readdirSync('src', { recursive: true, encoding: 'utf8' })
  .filter(
    (path) => /\.(tsx?|json)$/.test(path) && !/\.test\.|^testing\/|^api\/|^lib\/translate\.ts$/.test(path),
  )
  .map((path) => ({ path, code: readFileSync(`src/${path}`, 'utf8') }));

/** Legal texts are valid in the language in which they were written. */
const ENGLISH_ONLY = /^features\/legal\/(contact|privacy|terms)\.tsx$/;

const marked = SOURCES.flatMap(({ path, code }) =>
  (path.endsWith('.json') ? textsOfData(code) : textsOf(path, code)).map(({ message }) => message),
);

const read = (language: string) => entriesOf(readFileSync(`src/languages/${language}.po`, 'utf8'));

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
    '<Icon name="Check" />',
    'const title = msg("Later")',
    'throw new Error("useConfig needs a ConfigContext above it")',
    '<b>2 × 3 px</b>',
  ])('accepts %s', (code) => {
    expect(straysOf('example.tsx', `function Example() { ${code} }`)).toEqual([]);
  });
});

describe.each(Object.keys(languages))('the catalogue %s', (language) => {
  const entries = read(language);

  test('has exactly the texts of the code: otherwise run `npm run extract`', () => {
    expect(entries.map(({ message }) => message).sort()).toEqual([...new Set(marked)].sort());
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

  test('compiles to a key for each text', () => {
    const catalogue = compileCatalogue(readFileSync(`src/languages/${language}.po`, 'utf8'));
    // Texts that differ only in the form for one have the same key, and the same translation.
    expect(Object.keys(catalogue)).toHaveLength(
      new Set(entries.map(({ message = '' }) => keyOfText(message))).size,
    );
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
