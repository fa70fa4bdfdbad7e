import type { Config } from '@/lib/api-types';
import { type Message, msg, plural, t } from '@/lib/translate';

type Offer = Pick<Config['magicFix'], 'modes' | 'vocabulary' | 'demo'>;
type Mode = Offer['modes'][number];

export const promptTexts = {
  required: () => t('Prompt is required'),
  tooLong: (maxLetters: number) =>
    plural(maxLetters, {
      one: 'Prompt is too long, maximum of # letter is allowed',
      other: 'Prompt is too long, maximum of # letters is allowed',
    }),
  noArea: () => t('You have to draw to select area you want to fix 1'),
};

/** Counts code points, as the API does: an emoji is one letter. */
export const countLetters = (prompt: string) => [...prompt.trim()].length;

export function promptProblem(prompt: string, maxLetters: number): string | null {
  const letters = countLetters(prompt);
  if (letters === 0) return promptTexts.required();
  return letters > maxLetters ? promptTexts.tooLong(maxLetters) : null;
}

/** The API reads these in every language, and no model reads them. */
const commands = {
  remove: msg('Remove this'),
  restore: msg('Restore'),
  enhance: msg('Enhance details'),
};

/** What models read, so English in every language. */
const descriptions = { edit: 'Make it blue', add: 'Add a flower' };

const isDescribed = (mode: Mode): mode is keyof typeof descriptions => mode in descriptions;

const exampleOf = (mode: Mode) => (isDescribed(mode) ? descriptions[mode] : t(commands[mode]));

/** Prompts for a demo model with a small vocabulary. */
const demoExamples = [
  'a red circle',
  'a blue square',
  'a pink heart',
  'a yellow star',
  'green stripes',
  'black and white checks',
];
const MAX_DEMO_EXAMPLES = 3;

/** Prompts that work on this installation. */
export function suggestions({ modes, vocabulary, demo }: Offer): string[] {
  const words = vocabulary ?? [];
  const understood = demoExamples.filter((example) =>
    example.split(' ').every((word) => words.includes(word)),
  );
  const real = modes.filter((mode) => !demo || !isDescribed(mode));
  return [...real.map(exampleOf), ...(demo ? understood.slice(0, MAX_DEMO_EXAMPLES) : [])];
}

const abilities: Record<Mode, Message> = {
  remove: msg('remove'),
  restore: msg('restore'),
  enhance: msg('enhance'),
  edit: msg('edit'),
  add: msg('add'),
};

/** Says what Magic Fix can do on this installation. */
export function possibilities({ modes, demo }: Offer): string {
  const can = t('Here you can {modes}.', { modes: joinWords(modes.map((mode) => t(abilities[mode]))) });
  return demo ? `${can} ${t('A small demo model that knows few words does the editing and adding.')}` : can;
}

function joinWords(words: string[]): string {
  const last = words.pop() ?? '';
  return words.length > 0 ? t('{words} and {last}', { words: words.join(t(', ')), last }) : last;
}
