import { useQueryClient } from '@tanstack/react-query';
import { Suspense, useState } from 'react';
import { lazyWithRetry } from '@/components/lazy-with-retry';
import { type Background, backgroundCss } from '@/features/finish/look';
import { DownloadControl } from '@/features/results/download-control';
import { fetchPicture } from '@/features/results/fetch-picture';
import { PanelButton } from '@/features/results/panel-button';
import { ResultPreview, type View } from '@/features/results/result-preview';
import type { Backdrop, DownloadFormat } from '@/lib/download';
import { loadWithRetry, prefetch } from '@/lib/load-with-retry';
import type { FreeResult } from './use-free-run';

const loadOptions = () => import('@/features/finish/background-options');
const BackgroundOptions = lazyWithRetry(loadOptions);

type FreeResultViewProps = { result: FreeResult; alt: string; original: string | null; isCutOut: boolean };

/** A visitor's result. The API renders files for accounts only, so the browser makes this one. */
export default function FreeResultView({ result, alt, original, isCutOut }: FreeResultViewProps) {
  const queryClient = useQueryClient();
  const [view, setView] = useState<View>('result');
  const [background, setBackground] = useState<Background | null>(null);
  const [isOpen, setOpen] = useState(false);

  async function fileOf(format: DownloadFormat) {
    const { convertPicture } = await loadWithRetry(() => import('@/lib/download'));
    return convertPicture(await fetchPicture(queryClient, result.url), format, backdropOf(background));
  }

  return (
    <div className="grid gap-4">
      <ResultPreview
        result={{ ...result, isNew: false, credits: 0 }}
        alt={alt}
        original={original === null ? null : { url: original }}
        view={view}
        onView={setView}
        background={backgroundCss(background)}
      />
      <div className="grid gap-3">
        <DownloadControl fileOf={fileOf}>
          {isCutOut && (
            <PanelButton
              name="Background"
              background={background}
              isOpen={isOpen}
              onToggle={() => setOpen(!isOpen)}
              onPrefetch={prefetch(loadOptions)}
            />
          )}
        </DownloadControl>
        {isOpen && (
          <Suspense>
            <div className="rounded-md border border-line bg-surface p-4">
              <BackgroundOptions background={background} onBackground={setBackground} isSimple />
            </div>
          </Suspense>
        )}
      </div>
    </div>
  );
}

/** The backgrounds that the browser can put into a file. */
function backdropOf(background: Background | null): Backdrop {
  return background && ('color' in background || 'picture' in background) ? background : null;
}
