import { Suspense } from 'react';
import { lazyWithRetry } from '@/components/lazy-with-retry';
import type { Result } from '@/lib/api-types';

const SourceNoteText = lazyWithRetry(() => import('./source-note-text'), null);

/** Tells the user about the marks of the file, if it has any. Most have none, so the text comes only with them. */
export function SourceNote({ result: { source, url } }: { result: Pick<Result, 'url' | 'source'> }) {
  return source ? (
    <Suspense>
      <SourceNoteText source={source} url={url} />
    </Suspense>
  ) : null;
}
