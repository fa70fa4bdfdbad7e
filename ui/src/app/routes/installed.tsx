import { type ReactNode, Suspense } from 'react';
import { lazyWithRetry } from '@/components/lazy-with-retry';
import { PageSkeleton } from '@/components/page-skeleton';
import type { ToolName } from '@/lib/api-types';
import { useTool } from '@/lib/env';

const ToolNotInstalled = lazyWithRetry(() => import('./tool-not-installed'));

/** Renders its children if this installation offers the tool, for paid or free runs. */
export function Installed({ name, children }: { name: ToolName; children: ReactNode }) {
  const offer = useTool(name);
  if (offer?.available || offer?.freeAvailable) return children;
  return (
    <Suspense fallback={<PageSkeleton />}>
      <ToolNotInstalled name={name} />
    </Suspense>
  );
}
