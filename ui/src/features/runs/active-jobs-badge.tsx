import { Spinner } from '@/components/spinner';
import { plural } from '@/lib/translate';
import { useActiveJobs } from './get-active-jobs';
import { shortProgress } from './job-text';

/** The progress of an image's jobs, on its thumbnail. */
export default function ActiveJobsBadge({ imageId }: { imageId: string }) {
  const { data } = useActiveJobs();
  const jobs = data?.filter((job) => job.imageId === imageId) ?? [];
  const [first] = jobs;
  if (!first) return null;
  return (
    <span className="absolute bottom-1 left-1 inline-flex items-center gap-1 rounded-full border border-line bg-surface px-2 py-0.5 text-xs font-semibold text-ink tabular-nums">
      <Spinner />
      {jobs.length === 1 ? shortProgress(first) : plural(jobs.length, { one: '# run', other: '# runs' })}
    </span>
  );
}
