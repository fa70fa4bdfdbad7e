import { Spinner } from '@/components/spinner';
import type { Job } from '@/lib/api-types';
import { detailsOf, nameOf } from './running-text';

/** One run: what is being made, and how far it is. */
export function RunningRow({ job }: { job: Job }) {
  return (
    <>
      <Spinner />
      <span className="min-w-0 flex-1">
        <span className="block font-semibold">{nameOf(job)}</span>
        <span className="block tabular-nums">{detailsOf(job)}</span>
      </span>
    </>
  );
}
