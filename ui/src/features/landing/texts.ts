import type { IconName } from '@/components/icon';
import type { ToolName } from '@/lib/api-types';
import { paths } from '@/lib/paths';

export const tools: { to: string; icon: IconName; action: string }[] = [
  { to: paths.removeBackground, icon: 'cutout', action: 'Remove Background' },
  { to: paths.upscale, icon: 'upscale', action: 'Upscale' },
  { to: paths.magic, icon: 'magic', action: 'Magic Fix' },
];

export type SectionTexts = { tool: ToolName; to: string; title: string; text: string };

export const sections = {
  magicFix: {
    tool: 'magic-fix',
    to: paths.magic,
    title: 'AI-Powered Image Magic Fix',
    text: 'Paint over part of an image and say what should happen there. With an exact mask, no pixel outside it changes; without, the result blends in a few pixels beyond it.',
  },
  cutOuts: {
    tool: 'remove-background',
    to: paths.removeBackground,
    title: 'AI-Powered Background Removal',
    text: 'Your subject at full resolution, with soft edges around fur and hair and no fringe of the old background color.',
  },
  upscales: {
    tool: 'upscale',
    to: paths.upscale,
    title: 'AI-Powered Image Upscaling',
    text: 'Two or four times the width and height, with detail where plain enlarging leaves a blur. Transparency is preserved.',
  },
} satisfies Record<string, SectionTexts>;

export const steps = [
  {
    title: 'Upload an image',
    text: 'Drop a JPG, PNG or WebP file. We remove camera metadata such as your location.',
  },
  {
    title: 'Watch it happen',
    text: 'You see what a run costs before you start it, then your place in the queue and the progress.',
  },
  {
    title: 'Download the result',
    text: 'As PNG, JPG or WebP, at full resolution. A failed run costs nothing.',
  },
];
