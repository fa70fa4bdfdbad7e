import { Glyph } from '@/components/icon';

const shapes = {
  brush: 'M16.5 3.5 9 11M9 11c-2.5-.6-4.2.8-4.5 3-.2 1.2-.8 2-1.5 2.4 3.6.7 7-.4 7.4-3.4.1-.8-.5-1.7-1.4-2z',
  eraser: 'M8 16.5h8.5M11.2 4.2l4.6 4.6-7.6 7.7H6l-2.6-2.6a1 1 0 0 1 0-1.5zM7.3 8.2l4.6 4.6',
  hand: 'M10 3v14M3 10h14M10 3 8 5M10 3l2 2M10 17l-2-2M10 17l2-2M3 10l2-2M3 10l2 2M17 10l-2-2M17 10l-2 2',
  undo: 'M7 4.5 3.5 8 7 11.5M3.5 8H12a4.2 4.2 0 0 1 0 8.4H8.5',
  redo: 'M13 4.5 16.5 8 13 11.5M16.5 8H8a4.2 4.2 0 0 0 0 8.4h3.5',
  zoomIn: 'M9 4a5 5 0 1 1 0 10A5 5 0 0 1 9 4zM12.7 12.7 17 17M9 6.8v4.4M6.8 9h4.4',
  zoomOut: 'M9 4a5 5 0 1 1 0 10A5 5 0 0 1 9 4zM12.7 12.7 17 17M6.8 9h4.4',
  fit: 'M3.5 7V3.5H7M13 3.5h3.5V7M16.5 13v3.5H13M7 16.5H3.5V13M7 8h6v4H7z',
  eye: 'M2.5 10C4.3 6.9 7 5.3 10 5.3s5.7 1.6 7.5 4.7c-1.8 3.1-4.5 4.7-7.5 4.7S4.3 13.1 2.5 10zM10 7.8a2.2 2.2 0 1 1 0 4.4 2.2 2.2 0 0 1 0-4.4z',
} as const;

export type EditorIconName = keyof typeof shapes;

/** Icons of the mask editor alone, so that no other page carries them. */
export function EditorIcon({ name }: { name: EditorIconName }) {
  return <Glyph shape={shapes[name]} />;
}
