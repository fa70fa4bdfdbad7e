import { lazy, Suspense } from 'react';
import { Skeleton } from '@/components/skeleton';
import { useUser } from '@/features/credits/get-user';
import ImagePicker from '@/features/images/image-picker';
import { useBatches } from '@/features/tools/batch/batch';
import type { EditingTool } from '@/features/tools/tool';
import { useConfig } from '@/lib/env';
import { useSession } from '@/lib/session';

const RunningBadge = lazy(() => import('@/features/tools/under-way/running-badge'));
const loadAddFiles = () => import('@/features/tools/batch/add-files');
const BatchPanel = lazy(() => import('@/features/tools/batch/batch-panel'));

/** For a user: one stored image, one new one, or several files at once. */
export default function ToolPicker({ tool }: { tool: EditingTool }) {
  const { limits } = useConfig();
  const { email } = useSession();
  const { data: user } = useUser();
  const batch = useBatches((batches) => batches[tool.name]);

  async function begin(files: File[]) {
    const { addFiles } = await loadAddFiles();
    await addFiles(tool, files, email, {
      maxDimension: limits[tool.limit],
      maxBytes: limits.maxUploadBytes,
    });
  }

  if (batch?.owner === email && batch) {
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
