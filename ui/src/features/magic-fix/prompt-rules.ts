import type { Config } from '@/lib/api-types';

type Offer = Pick<Config['magicFix'], 'modes' | 'vocabulary' | 'demo'>;
type Mode = Offer['modes'][number];

export const promptTexts = {
  required: 'Prompt is required',
  tooLong: (maxLetters: number) => `Prompt is too long, maximum of ${maxLetters} letters is allowed`,
  noArea: 'You have to draw to select area you want to fix 1',
};

/** Counts code points, as the API does: an emoji is one letter. */
export const countLetters = (prompt: string) => [...prompt.trim()].length;

export function promptProblem(prompt: string, maxLetters: number): string | null {
  const letters = countLetters(prompt);
  if (letters === 0) return promptTexts.required;
  return letters > maxLetters ? promptTexts.tooLong(maxLetters) : null;
}

const examples: Record<Mode, string> = {
  remove: 'Remove this',
  restore: 'Restore',
  enhance: 'Enhance details',
  edit: 'Make it blue',
  add: 'Add a flower',
};

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
  const real = modes.filter((mode) => !demo || (mode !== 'edit' && mode !== 'add'));
  return [...real.map((mode) => examples[mode]), ...(demo ? understood.slice(0, MAX_DEMO_EXAMPLES) : [])];
}

/** Says what Magic Fix can do on this installation. */
export function possibilities({ modes, demo }: Offer): string {
  const can = `Here you can ${joinWords(modes)}.`;
  return demo ? `${can} A small demo model that knows few words does the editing and adding.` : can;
}

function joinWords(words: string[]): string {
  return words.length < 2 ? words.join('') : `${words.slice(0, -1).join(', ')} and ${words.at(-1)}`;
}
