import { readFileSync } from 'node:fs';
import type { ExtractorType } from '@lingui/conf';
import { defineConfig } from '@lingui/conf';
import { formatter } from '@lingui/format-po';
import { generateMessageId } from '@lingui/message-utils/generateMessageId';
import { textsOf, textsOfData } from './plugins/texts.ts';

/** Finds the texts that the code marks with `t`, `plural`, `rich` and `msg`, and those in the data of examples. */
const extractor: ExtractorType = {
  match: (fileName) => /\.tsx?$/.test(fileName) || /\/features\/examples\/[\w-]+\.json$/.test(fileName),
  extract: (fileName, code, onMessage) => {
    const texts = fileName.endsWith('.json')
      ? textsOfData(readFileSync(fileName, 'utf8'))
      : textsOf(fileName, code);
    for (const { message, line } of texts) {
      onMessage({ id: generateMessageId(message), message, origin: [fileName, line], placeholders: {} });
    }
  },
};

export default defineConfig({
  sourceLocale: 'en',
  locales: ['en', 'de', 'es', 'fr', 'pt', 'ja', 'zh-Hans'],
  catalogs: [
    {
      path: '<rootDir>/src/languages/{locale}',
      include: ['<rootDir>/src'],
      exclude: ['**/*.test.*', '**/testing/**', '**/src/api/**', '**/lib/translate.ts'],
    },
  ],
  extractors: [extractor],
  format: formatter({ lineNumbers: false, printPlaceholdersInComments: false }),
  orderBy: 'origin',
});
