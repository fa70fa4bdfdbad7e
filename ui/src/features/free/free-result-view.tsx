import { useQueryClient } from '@tanstack/react-query';
import { Suspense, useState } from 'react';
import { lazyWithRetry } from '@/components/lazy-with-retry';
import { type Background, backgroundCss } from '@/features/finish/look';
import { useBackgroundUrl } from '@/features/finish/use-background-url';
import { DownloadControl } from '@/features/results/download-control';
import { PanelButton } from '@/features/results/panel-button';
import { sharedResultFile } from '@/features/results/result-file';
import { ResultPreview, type View } from '@/features/results/result-preview';
import { SourceNote } from '@/features/results/source-note';
import { prefetch } from '@/lib/load-with-retry';
import { t } from '@/lib/translate';
import type { FreeResult } from './free-runs';

const loadOptions = () => import('@/features/finish/background-options');
const BackgroundOptions = lazyWithRetry(loadOptions);

type FreeResultViewProps = { result: FreeResult; alt: string; original: string | null; isCutout: boolean };

/** A visitor's result. It belongs to nobody: its signed URL is what allows its download. */
export default function FreeResultView({ result, alt, original, isCutout }: FreeResultViewProps) {
  const queryClient = useQueryClient();
  const [view, setView] = useState<View>('result');
  const [background, setBackground] = useState<Background | null>(null);
  useBackgroundUrl(background);
  const [isOpen, setOpen] = useState(false);

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
      <div className="@container grid gap-3">
        <DownloadControl fileOf={(format) => sharedResultFile(queryClient, result, background, format)}>
          {isCutout && (
            <PanelButton
              name={t('Background')}
              background={background}
              isOpen={isOpen}
              onToggle={() => setOpen(!isOpen)}
              onPrefetch={prefetch(loadOptions)}
            />
          )}
        </DownloadControl>
        <SourceNote result={result} />
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
