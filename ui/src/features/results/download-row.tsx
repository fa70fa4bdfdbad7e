import { type ReactNode, Suspense, useState } from 'react';
import { Button } from '@/components/button';
import { lazyWithRetry } from '@/components/lazy-with-retry';
import type { Backdrop } from '@/lib/download';
import { prefetch } from '@/lib/load-with-retry';
import { backdropCss } from './backdrop-css';
import { DownloadControl } from './download-control';

const loadPanel = () => import('./backdrop-panel');
const BackdropPanel = lazyWithRetry(loadPanel);

type DownloadRowProps = {
  url: string;
  /** Null if results of this tool are never transparent. */
  onBackdrop: ((backdrop: Backdrop) => void) | null;
  backdrop: Backdrop;
  /** Further actions. */
  children?: ReactNode;
};

/** The download and, for a cut-out, its backdrop. */
export function DownloadRow({ url, backdrop, onBackdrop, children }: DownloadRowProps) {
  const [isOpen, setOpen] = useState(false);
  return (
    <div className="grid gap-3">
      <div className="flex flex-wrap items-center gap-x-2 gap-y-3">
        <DownloadControl url={url} backdrop={backdrop} />
        {onBackdrop && (
          <Button
            variant="secondary"
            aria-expanded={isOpen}
            onPointerEnter={prefetch(loadPanel)}
            onClick={() => setOpen(!isOpen)}
          >
            <span
              className="checkerboard size-5 rounded-full ring-1 ring-control"
              style={{ background: backdropCss(backdrop) }}
            />
            Background
          </Button>
        )}
        {children && <span className="ml-auto">{children}</span>}
      </div>
      {onBackdrop && isOpen && (
        <Suspense>
          <BackdropPanel backdrop={backdrop} onBackdrop={onBackdrop} />
        </Suspense>
      )}
    </div>
  );
}
