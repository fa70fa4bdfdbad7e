const shapes = {
  menu: 'M3 6h14M3 10h14M3 14h14',
  close: 'M5 5l10 10M15 5L5 15',
  chevron: 'M6 8l4 4 4-4',
  back: 'M12 4l-6 6 6 6',
  upload: 'M10 13V4M6 7.5 10 3.5l4 4M3.5 13v2.5a1 1 0 0 0 1 1h11a1 1 0 0 0 1-1V13',
  download: 'M10 3.5v9M6 9l4 4 4-4M3.5 13.5v2a1 1 0 0 0 1 1h11a1 1 0 0 0 1-1v-2',
  trash: 'M4 6h12M8 6V4h4v2M5.5 6l.7 10h7.6l.7-10M8.5 9v4.5M11.5 9v4.5',
  cutout: 'M10 3a7 7 0 0 0 0 14zM10 3a7 7 0 0 1 0 14M13.5 7.5h0M14.5 10.5h0M13 13.5h0',
  upscale: 'M12 3.5h4.5V8M16.5 3.5 11 9M8 16.5H3.5V12M3.5 16.5 9 11',
  magic:
    'M4 16 13 7M11.5 4.5l.7 1.6 1.6.7-1.6.7-.7 1.6-.7-1.6-1.6-.7 1.6-.7zM15.5 10l.5 1.2 1.2.5-1.2.5-.5 1.2-.5-1.2-1.2-.5 1.2-.5z',
  language:
    'M10 2.8a7.2 7.2 0 1 1 0 14.4 7.2 7.2 0 0 1 0-14.4zM3 10h14M10 2.8c4 4.5 4 10 0 14.4-4-4.5-4-10 0-14.4z',
  sun: 'M10 6.5a3.5 3.5 0 1 1 0 7 3.5 3.5 0 0 1 0-7zM10 2v1.5M10 16.5V18M2 10h1.5M16.5 10H18M4.3 4.3l1.1 1.1M14.6 14.6l1.1 1.1M4.3 15.7l1.1-1.1M14.6 5.4l1.1-1.1',
  moon: 'M16.5 11.5A6.5 6.5 0 1 1 8.5 3.5a5.2 5.2 0 0 0 8 8z',
  system: 'M3.5 4.5h13v9h-13zM7.5 16.5h5M10 13.5v3',
  check: 'M4 10.5l4 4 8-9',
  info: 'M10 9v5M10 6.2v.1M10 2.8a7.2 7.2 0 1 1 0 14.4 7.2 7.2 0 0 1 0-14.4z',
  warning: 'M10 3 18 16.5H2zM10 8v4M10 14v.1',
  image: 'M3.5 4.5h13v11h-13zM3.5 13l4-4 3 3 2-2 4 4M13 7.5h.1',
} as const;

export type IconName = keyof typeof shapes;

export function Icon({ name, className }: { name: IconName; className?: string }) {
  return <Glyph shape={shapes[name]} className={className} />;
}

/** An icon from an SVG path on a 20 × 20 grid, for icons that only one page needs. */
export function Glyph({ shape, className = 'size-5' }: { shape: string; className?: string }) {
  return (
    <svg viewBox="0 0 20 20" className={`shrink-0 ${className}`} aria-hidden="true">
      <path
        d={shape}
        fill="none"
        stroke="currentColor"
        strokeWidth="1.6"
        strokeLinecap="round"
        strokeLinejoin="round"
      />
    </svg>
  );
}
