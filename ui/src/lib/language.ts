import { create } from 'zustand';
import { connectionLost } from './api-client';
import { loadWithRetry } from './load-with-retry';
import { notifyError } from './notify';
import { type Catalogue, setCatalogue, t } from './translate';

/** The languages of the page, by the code that HTML and `Intl` know, with their own names. */
export const languages = {
  en: 'English',
  de: 'Deutsch',
  es: 'Español',
  fr: 'Français',
  pt: 'Português',
  ja: '日本語',
  'zh-Hans': '简体中文',
};

export type Language = keyof typeof languages;

const KEY = 'retouch-language';

type Part = () => Promise<{ default: Catalogue }>;

/** The texts for any page, and those for code that loads `withLaterTexts`. English has none: the code contains them. */
const catalogues: Record<Exclude<Language, 'en'>, [first: Part, later: Part]> = {
  de: [() => import('@/languages/de.po'), () => import('@/languages/de.po?later')],
  es: [() => import('@/languages/es.po'), () => import('@/languages/es.po?later')],
  fr: [() => import('@/languages/fr.po'), () => import('@/languages/fr.po?later')],
  pt: [() => import('@/languages/pt.po'), () => import('@/languages/pt.po?later')],
  ja: [() => import('@/languages/ja.po'), () => import('@/languages/ja.po?later')],
  'zh-Hans': [() => import('@/languages/zh-Hans.po'), () => import('@/languages/zh-Hans.po?later')],
};

/** The language of the texts on the screen. Pages subscribe to it, so that they render again after a change. */
export const useLanguage = create<{ language: Language }>(() => ({ language: 'en' }));

/** Loads the texts of the visitor's language before the first render. Falls back to English. */
export async function startLanguage() {
  await load(preferred()).catch(() => {});
}

/** Switches the page and remembers the choice. If the texts cannot be loaded, the page stays as it is. */
export async function switchLanguage(language: Language) {
  try {
    await load(language);
  } catch {
    // Later texts are for the language on the screen again.
    if (wanted === language) wanted = useLanguage.getState().language;
    return notifyError(t(connectionLost));
  }
  try {
    localStorage.setItem(KEY, language);
  } catch {
    // Storage is blocked: the choice lasts as long as the page.
  }
}

/**
 * Returns a function that loads code and, at the same time, the later texts. Those are the texts that only such code
 * contains: `plugins/first-modules.ts` finds the calls of this function.
 */
export function withLaterTexts<Code>(loadCode: () => Promise<Code>): () => Promise<Code> {
  return async () => {
    isLaterNeeded = true;
    const texts = loadTexts(wanted).catch(() => {});
    const code = await loadCode();
    await texts;
    return code;
  };
}

let wanted: Language = 'en';
let isLaterNeeded = false;

async function load(language: Language) {
  wanted = language;
  const catalogue = await loadTexts(language);
  // Another choice was faster.
  if (wanted !== language) return;
  setCatalogue(catalogue, language);
  document.documentElement.lang = language;
  useLanguage.setState({ language });
}

/** Returns the one object with the texts of a language. Later texts join it, also while it is in use. */
async function loadTexts(language: Language): Promise<Catalogue> {
  if (language === 'en') return {};
  const [first, later] = catalogues[language];
  const [texts, more] = await Promise.all([
    loadWithRetry(first),
    // Without its texts, a page is English.
    isLaterNeeded ? loadWithRetry(later).catch(() => null) : null,
  ]);
  return Object.assign(texts.default, more?.default);
}

/** The remembered choice, or else the browser's first language that the page has. */
function preferred(): Language {
  const codes = Object.keys(languages) as Language[];
  let choice: string | null = null;
  try {
    choice = localStorage.getItem(KEY);
  } catch {
    // Storage is blocked: the browser's languages decide.
  }
  for (const tag of [choice, ...navigator.languages]) {
    const found = tag && codes.find((code) => code.split('-')[0] === tag.split('-')[0]);
    if (found) return found;
  }
  return 'en';
}
