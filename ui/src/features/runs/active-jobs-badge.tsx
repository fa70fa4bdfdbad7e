import { Spinner } from '@/components/spinner';
import type { Job } from '@/lib/api-types';
import { plural } from '@/lib/translate';
import { shortProgress } from './job-text';

/** The progress of one job, or the number of several. */
export default function ActiveJobsBadge({ jobs }: { jobs: Job[] }) {
  const [first] = jobs;
  return (
    <span className="absolute bottom-1 left-1 inline-flex items-center gap-1 rounded-full border border-line bg-surface px-2 py-0.5 text-xs font-semibold text-ink tabular-nums">
      <Spinner />
      {jobs.length === 1 && first
        ? shortProgress(first)
        : plural(jobs.length, { one: '# run', other: '# runs' })}
    </span>
  );
}
