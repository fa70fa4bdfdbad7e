/**
 * The page's texts in the chosen language. The code contains the English texts, so they cost no request and no table;
 * other catalogues load on demand (`lib/language.ts`). Lingui extracts and checks the catalogues in `src/languages`.
 * Its runtime is not used: with the ids that its macros write into the code, it would exceed the budget of the first
 * load by 4 kB. See docs/languages.md.
 */

/** The forms of a text that contains a number, as `#`. Every language has `other`; English also has `one`. */
export type Forms = Partial<Record<Intl.LDMLPluralRule, string>> & { other: string };

/** Texts by the key of their English text. */
export type Catalogue = Record<string, string | Forms>;

/** A text that is translated where it is shown. Opaque, so that the compiler finds places that forget to. */
export type Message = { readonly [message]: true };
declare const message: unique symbol;

/** The placeholders of a text: `'name' | 'size'` for "{name} has {size}". */
export type Placeholders<Text> = Text extends `${string}{${infer Name}}${infer Rest}`
  ? Name | Placeholders<Rest>
  : never;

type Values<Text> = [Placeholders<Text>] extends [never]
  ? []
  : [values: Record<Placeholders<Text>, string | number>];

let catalogue: Catalogue = {};
let locale = 'en';
let rules = new Intl.PluralRules(locale);
let numbers = new Intl.NumberFormat(locale, { useGrouping: false });

export function setCatalogue(next: Catalogue, nextLocale: string) {
  catalogue = next;
  locale = nextLocale;
  rules = new Intl.PluralRules(locale);
  // In English, the product specification writes counts without commas.
  numbers = new Intl.NumberFormat(locale, { useGrouping: locale !== 'en' });
}

/** The locale for `Intl`. */
export const currentLocale = () => locale;

/** The key of an English text: catalogues need not repeat the text. `plugins/catalogues.ts` checks for collisions. */
export function keyOf(text: string): string {
  let hash = 0;
  for (let i = 0; i < text.length; i++) hash = (hash * 31 + text.charCodeAt(i)) | 0;
  return (hash >>> 0).toString(36);
}

/** Marks a text outside a function, where the language is not known yet. */
export const msg = (text: string) => text as unknown as Message;

/** Returns a text in the current language, with its placeholders filled in. */
export function t<const Text extends string>(text: Text | Message, ...[values]: Values<Text>): string {
  return fill(find(text as string) as string, values);
}

/** Returns the form that fits a number, which replaces `#`. */
export function plural<const Other extends string>(
  count: number,
  forms: { one: string; other: Other },
  ...[values]: Values<Other>
): string {
  const found = find(forms.other, forms) as Forms;
  const form = found[rules.select(count)] ?? found.other;
  return fill(form.replace('#', formatNumber(count)), values);
}

/**
 * Translates a text that comes with data, such as a sentence of the API. Numbers in it are
 * placeholders. If the language does not know the text, it tries `other`, and then keeps the text.
 */
export function dataText(text: string, other = ''): string {
  const numbers: string[] = [];
  const template = text.replace(/\d+/g, (number) => `{${numbers.push(number) - 1}}`);
  return fill(find(text, find(template, find(other, template))) as string, numbers);
}

/** Formats a count. */
export const formatNumber = (value: number) => numbers.format(value);

/** Returns the translation of a text; the text itself if there is none. */
export function find(text: string, fallback: string | Forms = text): string | Forms {
  return catalogue[keyOf(text)] ?? fallback;
}

function fill(text: string, values?: Record<string, string | number> | string[]): string {
  return values
    ? text.replace(/{(\w+)}/g, (_, name) => `${(values as Record<string, string | number>)[name]}`)
    : text;
}
