import { describe, expect, test } from 'vitest';
import { possibilities, promptProblem, suggestions } from './prompt-rules';

describe('a prompt', () => {
  test.each(['', '   ', '\n'])('%j is required', (prompt) => {
    expect(promptProblem(prompt, 500)).toBe('Prompt is required');
  });

  test('has at most 500 letters, whatever alphabet they are of', () => {
    expect(promptProblem('a'.repeat(500), 500)).toBeNull();
    expect(promptProblem('🌵'.repeat(500), 500)).toBeNull();
    expect(promptProblem(` ${'a'.repeat(500)} `, 500)).toBeNull();
    expect(promptProblem('a'.repeat(501), 500)).toBe('Prompt is too long, maximum of 500 letters is allowed');
  });
});

describe('what can be asked for', () => {
  test('is what engines are installed for', () => {
    const offer = { modes: ['remove', 'restore', 'enhance'] as const, vocabulary: null, demo: false };
    const three = { ...offer, modes: [...offer.modes] };
    expect(possibilities(three)).toBe('Here you can remove, restore and enhance.');
    expect(suggestions(three)).toEqual(['Remove this', 'Restore', 'Enhance details']);
    expect(possibilities({ ...three, modes: ['remove'] })).toBe('Here you can remove.');
  });

  test('is openly small where the model that draws is a demo', () => {
    const demo = {
      modes: ['edit' as const, 'remove' as const, 'add' as const],
      vocabulary: ['a', 'red', 'pink', 'circle', 'heart', 'green'],
      demo: true,
    };
    expect(possibilities(demo)).toBe(
      'Here you can edit, remove and add. Editing and adding is done by a small demo model that knows few words.',
    );
    // Only what it knows every word of.
    expect(suggestions(demo)).toEqual(['Remove this', 'a red circle', 'a pink heart']);
  });

  test('has an example of each mode of a real model', () => {
    expect(suggestions({ modes: ['edit', 'add'], vocabulary: null, demo: false })).toEqual([
      'Make it blue',
      'Add a flower',
    ]);
  });
});
