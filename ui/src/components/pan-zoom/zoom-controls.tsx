import type { ReactNode } from 'react';
import { Glyph } from '@/components/icon';
import { IconButton } from '@/components/icon-button';
import { t } from '@/lib/translate';
import type { ViewControl } from './use-view';

const shapes = {
  zoomIn: 'M9 4a5 5 0 1 1 0 10A5 5 0 0 1 9 4zM12.7 12.7 17 17M9 6.8v4.4M6.8 9h4.4',
  zoomOut: 'M9 4a5 5 0 1 1 0 10A5 5 0 0 1 9 4zM12.7 12.7 17 17M6.8 9h4.4',
  fit: 'M3.5 7V3.5H7M13 3.5h3.5V7M16.5 13v3.5H13M7 16.5H3.5V13M7 8h6v4H7z',
};

type ZoomControlsProps = {
  control: ViewControl;
  /** The zoom level between the two buttons. */
  level: ReactNode;
  /** Further buttons, in front of the last one. */
  children?: ReactNode;
};

export function ZoomControls({ control, level, children }: ZoomControlsProps) {
  return (
    <>
      <IconButton label={t('Zoom out')} disabled={control.isFitted} onClick={control.zoomOut}>
        <Glyph shape={shapes.zoomOut} />
      </IconButton>
      {level}
      <IconButton label={t('Zoom in')} onClick={control.zoomIn}>
        <Glyph shape={shapes.zoomIn} />
      </IconButton>
      {children}
      <IconButton label={t('Fit')} title={t('Fit (0)')} disabled={control.isFitted} onClick={control.fit}>
        <Glyph shape={shapes.fit} />
      </IconButton>
    </>
  );
}
