import { type ReactNode, Suspense } from 'react';
import { lazyWithRetry } from '@/components/lazy-with-retry';
import { PageSkeleton } from '@/components/page-skeleton';
import type { ToolName } from '@/lib/api-types';
import { isInstalled, useConfig } from '@/lib/env';

const ToolNotInstalled = lazyWithRetry(() => import('./tool-not-installed'));

/** Renders its children if this installation offers the tool. */
export function Installed({ name, children }: { name: ToolName; children: ReactNode }) {
  const config = useConfig();
  if (isInstalled(config, name)) return children;
  return (
    <Suspense fallback={<PageSkeleton />}>
      <ToolNotInstalled name={name} />
    </Suspense>
  );
}
