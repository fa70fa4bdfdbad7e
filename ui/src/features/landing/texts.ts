import type { IconName } from '@/components/icon';
import type { ToolName } from '@/lib/api-types';
import { paths } from '@/lib/paths';
import { type Message, msg } from '@/lib/translate';

export const tools: { to: string; icon: IconName; action: Message }[] = [
  { to: paths.removeBackground, icon: 'cutout', action: msg('Remove Background') },
  { to: paths.upscale, icon: 'upscale', action: msg('Upscale') },
  { to: paths.magic, icon: 'magic', action: msg('Magic Fix') },
];

export type SectionTexts = { tool: ToolName; to: string; title: Message; text: Message };

export const sections = {
  magicFix: {
    tool: 'magic-fix',
    to: paths.magic,
    title: msg('AI-Powered Image Magic Fix'),
    text: msg(
      'Paint over part of an image and say what should happen there. With an exact mask, no pixel outside it changes; without, the result blends in a few pixels beyond it.',
    ),
  },
  cutouts: {
    tool: 'remove-background',
    to: paths.removeBackground,
    title: msg('AI-Powered Background Removal'),
    text: msg(
      'Your subject at full resolution, with soft edges around fur and hair and no fringe of the old background color.',
    ),
  },
  upscales: {
    tool: 'upscale',
    to: paths.upscale,
    title: msg('AI-Powered Image Upscaling'),
    text: msg(
      'Two or four times the width and height, with detail where plain enlarging leaves a blur. Transparency is preserved.',
    ),
  },
} satisfies Record<string, SectionTexts>;

/** Where the server reads neither HEIC nor AVIF, or only one of them. */
export const commonUpload = msg(
  'Drop a JPG, PNG or WebP file. We remove camera metadata such as your location.',
);

export const steps = [
  {
    id: 'upload',
    title: msg('Upload an image'),
    text: msg('Drop a JPG, PNG, WebP, HEIC or AVIF file. We remove camera metadata such as your location.'),
  },
  {
    id: 'watch',
    title: msg('Watch it happen'),
    text: msg('You see what a run costs before you start it, then your place in the queue and the progress.'),
  },
  {
    id: 'download',
    title: msg('Download the result'),
    text: msg('As PNG, JPG or WebP, at full resolution. A failed run costs nothing.'),
  },
];
