import { Spinner } from '@/components/spinner';
import { useRunning } from './get-running';
import { progressOf } from './running-text';

/** On the thumbnail of an image that something is being made of. */
export default function RunningBadge({ imageId }: { imageId: string }) {
  const { data } = useRunning();
  const jobs = data?.filter((job) => job.imageId === imageId) ?? [];
  const [first] = jobs;
  if (!first) return null;
  return (
    <span className="absolute bottom-1 left-1 inline-flex items-center gap-1 rounded-full border border-line bg-surface px-2 py-0.5 text-xs font-semibold text-ink tabular-nums">
      <Spinner />
      {jobs.length === 1 ? progressOf(first) : `${jobs.length} runs`}
    </span>
  );
}
