import type { ReactNode } from 'react';

type PictureBoxProps = { width: number; height: number; children: ReactNode; overlay?: ReactNode };

/**
 * A frame with the picture's aspect ratio, as wide as possible but never taller than the window. The size is known
 * before the picture has loaded, so nothing shifts when it does.
 */
export function PictureBox({ width, height, children, overlay }: PictureBoxProps) {
  return (
    <div className="relative grid min-h-40 place-items-center overflow-hidden rounded-lg border border-line bg-sunken">
      <div
        className="relative w-full"
        style={{
          aspectRatio: `${width} / ${height}`,
          maxWidth: `calc(min(var(--picture-height, 60dvh), 34rem) * ${width / height})`,
        }}
      >
        {children}
      </div>
      {overlay}
    </div>
  );
}
