import type { Config } from '@/lib/api-types';

type Offer = Config['magicFix'];
type Mode = Offer['modes'][number];

export const promptTexts = {
  required: 'Prompt is required',
  tooLong: (most: number) => `Prompt is too long, maximum of ${most} letters is allowed`,
  noArea: 'You have to draw to select area you want to fix 1',
};

/** Counted as the API does: a letter outside the basic plane is one letter. */
export const lettersOf = (prompt: string) => [...prompt.trim()].length;

export function promptProblem(prompt: string, most: number): string | null {
  const letters = lettersOf(prompt);
  if (letters === 0) return promptTexts.required;
  return letters > most ? promptTexts.tooLong(most) : null;
}

const examples: Record<Mode, string> = {
  remove: 'Remove this',
  restore: 'Restore',
  enhance: 'Enhance details',
  edit: 'Make it blue',
  add: 'Add a flower',
};

/** For a demo model, which knows few words: prompts that it may know all words of. */
const demoExamples = [
  'a red circle',
  'a blue square',
  'a pink heart',
  'a yellow star',
  'green stripes',
  'black and white checks',
];
const SHOWN_EXAMPLES = 3;

/** Prompts that work on this installation. */
export function suggestions({ modes, vocabulary, demo }: Offer): string[] {
  const words = vocabulary ?? [];
  const known = demoExamples.filter((example) => example.split(' ').every((word) => words.includes(word)));
  const real = modes.filter((mode) => !demo || (mode !== 'edit' && mode !== 'add'));
  return [...real.map((mode) => examples[mode]), ...(demo ? known.slice(0, SHOWN_EXAMPLES) : [])];
}

/** What can be done on this installation. */
export function possibilities({ modes, demo }: Offer): string {
  const can = `Here you can ${listed(modes)}.`;
  return demo ? `${can} Editing and adding is done by a small demo model that knows few words.` : can;
}

function listed(words: string[]): string {
  return words.length < 2 ? words.join('') : `${words.slice(0, -1).join(', ')} and ${words.at(-1)}`;
}
