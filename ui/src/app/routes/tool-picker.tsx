import { lazy, Suspense } from 'react';
import { Skeleton } from '@/components/skeleton';
import { useUser } from '@/features/credits/get-user';
import ImagePicker from '@/features/images/image-picker';
import { useBatches } from '@/features/tools/batch/batch';
import type { EditingTool } from '@/features/tools/tool';
import { connectionLost } from '@/lib/api-client';
import { useConfig } from '@/lib/env';
import { notifyError } from '@/lib/notify';
import { useSession } from '@/lib/session';

const RunningBadge = lazy(() => import('@/features/tools/under-way/running-badge'));
const loadAddFiles = () => import('@/features/tools/batch/add-files');
const loadBatchPanel = () => import('@/features/tools/batch/batch-panel');
const BatchPanel = lazy(loadBatchPanel);

/** For a user: one stored image, one new one, or several files at once. */
export default function ToolPicker({ tool }: { tool: EditingTool }) {
  const { limits } = useConfig();
  const { userId } = useSession();
  const { data: user } = useUser();
  const batch = useBatches((batches) => batches[tool.name]);

  async function begin(files: File[]) {
    // Both before anything is changed: without a network the page stays as it is, and says why.
    const loaded = await Promise.all([loadAddFiles(), loadBatchPanel()]).catch(() => null);
    if (!loaded) return notifyError(connectionLost);
    const [{ addFiles }] = loaded;
    await addFiles(tool, files, userId, {
      maxDimension: limits[tool.limit],
      maxBytes: limits.maxUploadBytes,
    });
  }

  if (batch?.owner === userId && batch) {
    return (
      <Suspense fallback={<Skeleton className="h-96 rounded-lg" />}>
        <BatchPanel
          tool={tool}
          batch={batch}
          available={user ? user.credits - user.reserved : null}
          onClose={() => document.getElementById('content')?.focus({ preventScroll: true })}
        />
      </Suspense>
    );
  }
  return (
    <ImagePicker
      prefix={tool.address}
      maxDimension={limits[tool.limit]}
      onFiles={begin}
      badge={(imageId) => (
        <Suspense>
          <RunningBadge imageId={imageId} />
        </Suspense>
      )}
    />
  );
}
