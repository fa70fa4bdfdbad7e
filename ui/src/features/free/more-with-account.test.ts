import { describe, expect, test } from 'vitest';
import { removeBackground } from '@/features/catalog/remove-background';
import { upscale } from '@/features/catalog/upscale';
import { aConfig, aModel } from '@/testing/builders';
import { isMoreWithAccount } from './more-with-account';

describe('an account', () => {
  const cutout = () => {
    const found = aConfig().tools.find(({ tool }) => tool === 'remove-background');
    if (!found) throw new Error('no remove-background');
    return found;
  };

  test('adds a model of its own, or another factor', () => {
    const twoModels = cutout();
    twoModels.models = { ...twoModels.models, allFree: [aModel('small')], allPaid: [aModel('large')] };
    expect(isMoreWithAccount(removeBackground, twoModels)).toBe(true);

    const oneModel = { ...twoModels, models: { ...twoModels.models, allPaid: [aModel('small')] } };
    expect(isMoreWithAccount(removeBackground, oneModel)).toBe(false);
    expect(isMoreWithAccount(upscale, { ...oneModel, tool: 'upscale' })).toBe(true);
  });

  test('adds nothing while no worker serves paid runs', () => {
    expect(isMoreWithAccount(removeBackground, { ...cutout(), available: false })).toBe(false);
    expect(isMoreWithAccount(upscale, { ...cutout(), available: false })).toBe(false);
  });
});
