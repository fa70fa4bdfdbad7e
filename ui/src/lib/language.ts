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

/** English has none: the code contains its texts. */
const catalogues: Record<Exclude<Language, 'en'>, () => Promise<{ default: Catalogue }>> = {
  de: () => import('@/languages/de.po'),
  es: () => import('@/languages/es.po'),
  fr: () => import('@/languages/fr.po'),
  pt: () => import('@/languages/pt.po'),
  ja: () => import('@/languages/ja.po'),
  'zh-Hans': () => import('@/languages/zh-Hans.po'),
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
    return notifyError(t(connectionLost));
  }
  try {
    localStorage.setItem(KEY, language);
  } catch {
    // Storage is blocked: the choice lasts as long as the page.
  }
}

let wanted: Language;

async function load(language: Language) {
  wanted = language;
  const catalogue = language === 'en' ? {} : (await loadWithRetry(catalogues[language])).default;
  // Another choice was faster.
  if (wanted !== language) return;
  setCatalogue(catalogue, language);
  document.documentElement.lang = language;
  useLanguage.setState({ language });
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
