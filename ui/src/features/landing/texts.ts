import type { IconName } from '@/components/icon';
import type { ToolName } from '@/lib/api-types';
import { paths } from '@/lib/paths';

export const tools: { tool: ToolName; to: string; icon: IconName; action: string; text: string }[] = [
  {
    tool: 'remove-background',
    to: paths.removeBackground,
    icon: 'cutout',
    action: 'Remove Background',
    text: 'Cuts the subject out at full resolution, with soft edges for hair and fur and no halo of the old background.',
  },
  {
    tool: 'upscale',
    to: paths.upscale,
    icon: 'upscale',
    action: 'Upscale',
    text: 'Makes small pictures two or four times as large and keeps their edges crisp, transparency included.',
  },
  {
    tool: 'magic-fix',
    to: paths.magic,
    icon: 'magic',
    action: 'Magic Fix',
    text: 'Paint over what should change and say what you want there. Everything outside your mask stays as it is.',
  },
];

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
