import { Spinner } from '@/components/spinner';
import type { Job } from '@/lib/api-types';
import { fullProgress, jobTitle } from './job-text';

export function JobRow({ job }: { job: Job }) {
  return (
    <>
      <Spinner />
      <span className="min-w-0 flex-1">
        <span className="block font-semibold">{jobTitle(job)}</span>
        <span className="block tabular-nums">{fullProgress(job)}</span>
      </span>
    </>
  );
}
