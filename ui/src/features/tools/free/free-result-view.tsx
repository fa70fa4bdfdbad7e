import { useState } from 'react';
import { DownloadControl } from '../results/download-control';
import type { View } from '../results/result-gallery';
import { ResultPreview } from '../results/result-preview';
import type { FreeResult } from './run-free';

type FreeResultViewProps = { result: FreeResult; alt: string; original: string };

export default function FreeResultView({ result, alt, original }: FreeResultViewProps) {
  const [view, setView] = useState<View>('result');
  return (
    <div className="grid gap-4">
      <ResultPreview
        result={{ ...result, isNew: false, credits: 0 }}
        alt={alt}
        originalUrl={original}
        view={view}
        onView={setView}
      />
      <DownloadControl url={result.url} />
    </div>
  );
}
