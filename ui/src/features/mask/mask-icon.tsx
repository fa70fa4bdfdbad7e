import { Glyph } from '@/components/icon';

const shapes = {
  brush: 'M16.5 3.5 9 11M9 11c-2.5-.6-4.2.8-4.5 3-.2 1.2-.8 2-1.5 2.4 3.6.7 7-.4 7.4-3.4.1-.8-.5-1.7-1.4-2z',
  eraser: 'M8 16.5h8.5M11.2 4.2l4.6 4.6-7.6 7.7H6l-2.6-2.6a1 1 0 0 1 0-1.5zM7.3 8.2l4.6 4.6',
  select: 'M4 4l4.6 12 2-5 5-2zM11 11l5 5',
  subject:
    'M3 6V3h3M14 3h3v3M17 14v3h-3M6 17H3v-3M10 6.2a2.1 2.1 0 1 1 0 4.2 2.1 2.1 0 0 1 0-4.2zM6.2 14.6c.5-2 2-3 3.8-3s3.3 1 3.8 3',
  minus: 'M5 10h10',
  lasso:
    'M5.5 13.2C3.9 12.3 3 11 3 9.5 3 6.5 6.1 4 10 4s7 2.5 7 5.5-3.1 5.5-7 5.5c-.8 0-1.6-.1-2.3-.3M7.7 14.7a1.6 1.6 0 1 1-2.2-1.5 1.6 1.6 0 0 1 2.2 1.5zM7.2 16c0 1-.6 1.6-1.7 1.8',
  hand: 'M10 3v14M3 10h14M10 3 8 5M10 3l2 2M10 17l-2-2M10 17l2-2M3 10l2-2M3 10l2 2M17 10l-2-2M17 10l-2 2',
  undo: 'M7 4.5 3.5 8 7 11.5M3.5 8H12a4.2 4.2 0 0 1 0 8.4H8.5',
  redo: 'M13 4.5 16.5 8 13 11.5M16.5 8H8a4.2 4.2 0 0 0 0 8.4h3.5',
  slider: 'M10 3v14M7 7.5 4.5 10 7 12.5M13 7.5l2.5 2.5-2.5 2.5',
  eye: 'M2.5 10C4.3 6.9 7 5.3 10 5.3s5.7 1.6 7.5 4.7c-1.8 3.1-4.5 4.7-7.5 4.7S4.3 13.1 2.5 10zM10 7.8a2.2 2.2 0 1 1 0 4.4 2.2 2.2 0 0 1 0-4.4z',
} as const;

export type MaskIconName = keyof typeof shapes;

/** Icons that only the mask editor needs, so that other pages do not load them. */
export function MaskIcon({ name }: { name: MaskIconName }) {
  return <Glyph shape={shapes[name]} />;
}
