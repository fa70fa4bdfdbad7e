import { describe, expect, test } from 'vitest';
import { aConfig, aModel, aResult } from '@/testing/builders';
import { isPaidLikeFree, isRepeat, typicalSeconds } from './bound-models';

const offer = () => {
  const upscale = aConfig().tools.find(({ tool }) => tool === 'upscale');
  if (!upscale) throw new Error('no upscale');
  return upscale;
};
const small = { x: 512, y: 512 };
const large = { x: 513, y: 512 };

describe('a paid run', () => {
  test('is like the free one only beyond the size of the better model', () => {
    expect(isPaidLikeFree(offer(), 2, small)).toBe(false);
    expect(isPaidLikeFree(offer(), 2, large)).toBe(true);
    // There are no free runs of 4X.
    expect(isPaidLikeFree(offer(), 4, large)).toBe(false);
  });

  test('is not like the free one while one worker has a better model', () => {
    const mixed = offer();
    mixed.models.allPaid.push(aModel('finest'));
    expect(isPaidLikeFree(mixed, 2, large)).toBe(false);
  });

  test('is a repeat if a result has the same factor and the same model', () => {
    const result = aResult({ factor: 2, modelSha256: aModel('compact').sha256 });
    expect(isRepeat(offer(), 2, large, [result])).toBe(true);
    expect(isRepeat(offer(), 4, large, [result])).toBe(false);
    expect(isRepeat(offer(), 2, small, [result])).toBe(false);
    expect(isRepeat(offer(), 2, large, [aResult({ factor: 2, modelSha256: 'of an older file' })])).toBe(
      false,
    );
  });
});

test('the typical time of an upscale grows with the image', () => {
  const times = [
    { tier: 'paid' as const, model: 'fine', seconds: 60, secondsPerMegapixel: 200 },
    { tier: 'paid' as const, model: 'compact', seconds: 3, secondsPerMegapixel: 6 },
  ];
  const upscale = { ...offer(), times };
  expect(typicalSeconds(upscale, 'paid', 2, { x: 500, y: 500 })).toBe(50);
  expect(typicalSeconds(upscale, 'paid', 2, { x: 1000, y: 1000 })).toBe(6);
  expect(typicalSeconds(upscale, 'free', 2, small)).toBeNull();
  // An icon takes one tile.
  const icon = typicalSeconds(upscale, 'paid', 2, { x: 16, y: 16 });
  expect(icon).toBe(typicalSeconds(upscale, 'paid', 2, { x: 256, y: 256 }));
  expect(typicalSeconds({ ...upscale, tool: 'magic-fix' }, 'paid', null, large)).toBe(3);
});
