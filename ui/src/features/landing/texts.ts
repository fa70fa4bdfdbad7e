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
    text: 'Paint over a part of the picture and say what should happen there. Every pixel outside your mask stays exactly as it was.',
  },
  cutOuts: {
    tool: 'remove-background',
    to: paths.removeBackground,
    title: 'AI-Powered Background Removal',
    text: 'The subject at full resolution, with soft edges for fur and hair and no rim in the colour of the old background.',
  },
  upscales: {
    tool: 'upscale',
    to: paths.upscale,
    title: 'AI-Powered Image Upscaling',
    text: 'Two or four times as wide and high, with detail where enlarging alone leaves a blur. Transparency is kept.',
  },
} satisfies Record<string, SectionTexts>;

export const steps = [
  {
    title: 'Upload a picture',
    text: 'Drop a JPG, PNG or WebP file. Camera metadata such as your location is removed.',
  },
  {
    title: 'Watch it happen',
    text: 'You see your place in the queue, the progress and what a run costs before you start it.',
  },
  {
    title: 'Download the result',
    text: 'As PNG, JPG or WebP, in the size you uploaded. A failed run costs nothing.',
  },
];
