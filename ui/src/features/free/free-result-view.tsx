import { useState } from 'react';
import { backdropCss } from '@/features/results/backdrop-css';
import { DownloadRow } from '@/features/results/download-row';
import { ResultPreview, type View } from '@/features/results/result-preview';
import type { Backdrop } from '@/lib/download';
import type { FreeResult } from './use-free-run';

type FreeResultViewProps = { result: FreeResult; alt: string; original: string | null; isCutOut: boolean };

export default function FreeResultView({ result, alt, original, isCutOut }: FreeResultViewProps) {
  const [view, setView] = useState<View>('result');
  const [backdrop, setBackdrop] = useState<Backdrop>(null);
  return (
    <div className="grid gap-4">
      <ResultPreview
        result={{ ...result, isNew: false, credits: 0 }}
        alt={alt}
        originalUrl={original}
        view={view}
        onView={setView}
        background={backdropCss(backdrop)}
      />
      <DownloadRow url={result.url} backdrop={backdrop} onBackdrop={isCutOut ? setBackdrop : null} />
    </div>
  );
}
