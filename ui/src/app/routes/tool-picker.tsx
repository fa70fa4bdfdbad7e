import { Suspense } from 'react';
import { lazyWithRetry } from '@/components/lazy-with-retry';
import { Skeleton } from '@/components/skeleton';
import { useBatches } from '@/features/batch/batch-store';
import type { EditingTool } from '@/features/catalog/tool';
import { useUser } from '@/features/credits/get-user';
import ImagePicker from '@/features/images/image-picker';
import { ProgressBadge } from '@/features/runs/progress-badge';
import { connectionLost } from '@/lib/api-client';
import { useConfig } from '@/lib/env';
import { loadWithRetry } from '@/lib/load-with-retry';
import { notifyError } from '@/lib/notify';
import { useSession } from '@/lib/session';
import { t } from '@/lib/translate';
import { fileLimits } from '@/lib/use-chosen-image';

const loadAddFiles = () => import('@/features/batch/add-files');
const loadBatchPanel = () => import('@/features/batch/batch-panel');
const BatchPanel = lazyWithRetry(loadBatchPanel);

/** Picks a stored image, a new one, or several files for a batch. */
export default function ToolPicker({ tool }: { tool: EditingTool }) {
  const config = useConfig();
  const { userId } = useSession();
  const { data: user } = useUser();
  const batch = useBatches((batches) => batches[tool.name]);

  async function startBatch(files: File[]) {
    // Loads both before changing anything: if that fails, the page stays as it is and says why.
    const loaded = await Promise.all([loadWithRetry(loadAddFiles), loadWithRetry(loadBatchPanel)]).catch(
      () => null,
    );
    if (!loaded) return notifyError(t(connectionLost));
    const [{ addFiles }] = loaded;
    await addFiles(tool, files, userId, fileLimits(config, config.limits[tool.limit]));
  }

  if (batch?.owner === userId && batch) {
    return (
      <Suspense fallback={<Skeleton className="h-96 rounded-lg" />}>
        <BatchPanel
          tool={tool}
          batch={batch}
          available={user ? user.credits - user.reserved : null}
          onClose={focusContent}
        />
      </Suspense>
    );
  }
  return (
    <ImagePicker
      prefix={tool.pagePath}
      maxDimension={config.limits[tool.limit]}
      onFiles={startBatch}
      badge={(imageId) => <ProgressBadge imageId={imageId} />}
    />
  );
}

const focusContent = () => document.getElementById('content')?.focus({ preventScroll: true });
