import { describe, expect, onTestFinished, test, vi } from 'vitest';
import { startLanguage, switchLanguage } from '@/lib/language';
import { possibilities, promptProblem, suggestions } from './prompt-rules';

describe('a prompt', () => {
  test.each(['', '   ', '\n'])('%j is required', (prompt) => {
    expect(promptProblem(prompt, 500)).toBe('Prompt is required');
  });

  test('has at most 500 letters of any alphabet', () => {
    expect(promptProblem('a'.repeat(500), 500)).toBeNull();
    expect(promptProblem('🌵'.repeat(500), 500)).toBeNull();
    expect(promptProblem(` ${'a'.repeat(500)} `, 500)).toBeNull();
    expect(promptProblem('a'.repeat(501), 500)).toBe('Prompt is too long, maximum of 500 letters is allowed');
  });
});

describe('what Magic Fix can do here', () => {
  test('lists the modes that have a model', () => {
    const offer = { modes: ['remove', 'restore', 'enhance'] as const, vocabulary: null, demo: false };
    const three = { ...offer, modes: [...offer.modes] };
    expect(possibilities(three)).toBe('Here you can remove, restore and enhance.');
    expect(suggestions(three)).toEqual(['Remove this', 'Restore', 'Enhance details']);
    expect(possibilities({ ...three, modes: ['remove'] })).toBe('Here you can remove.');
  });

  test('says so if the painting model is a demo', () => {
    const demo = {
      modes: ['edit' as const, 'remove' as const, 'add' as const],
      vocabulary: ['a', 'red', 'pink', 'circle', 'heart', 'green'],
      demo: true,
    };
    expect(possibilities(demo)).toBe(
      'Here you can edit, remove and add. A small demo model that knows few words does the editing and adding.',
    );
    // Only prompts whose every word it knows.
    expect(suggestions(demo)).toEqual(['Remove this', 'a red circle', 'a pink heart']);
  });

  test('suggests one prompt per mode of a full model', () => {
    expect(suggestions({ modes: ['edit', 'add'], vocabulary: null, demo: false })).toEqual([
      'Make it blue',
      'Add a flower',
    ]);
  });

  test('suggests in the user’s language what no model reads', async () => {
    onTestFinished(() => switchLanguage('en'));
    vi.spyOn(navigator, 'languages', 'get').mockReturnValue(['de']);
    await startLanguage();
    const all = ['remove', 'restore', 'enhance', 'edit', 'add'] as const;
    expect(suggestions({ modes: [...all], vocabulary: null, demo: false })).toEqual([
      'Das entfernen',
      'Wiederherstellen',
      'Details verbessern',
      'Make it blue',
      'Add a flower',
    ]);
  });
});
