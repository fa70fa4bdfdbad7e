import { Link } from 'react-router';
import { Spinner } from '@/components/spinner';
import type { Job, ToolName } from '@/lib/api-types';
import { paths } from '@/lib/paths';
import { nameOf, progressOf } from './running-text';

const pageOf: Record<ToolName, (imageId: string) => string> = {
  'remove-background': paths.removeBackgroundOf,
  upscale: paths.upscaleOf,
  'magic-fix': paths.magicOf,
};

/** What else is being made of an image, each with the way to where it is shown. */
export default function RunningList({ jobs, imageId }: { jobs: Job[]; imageId: string }) {
  if (jobs.length === 0) return null;
  return (
    <ul aria-label="Running" className="grid gap-2">
      {jobs.map((job) => (
        <li key={job.id}>
          <Link
            to={pageOf[job.tool](imageId)}
            aria-label={`${nameOf(job)}: ${progressOf(job)}`}
            className="flex min-h-11 items-center gap-3 rounded-md bg-accent-wash px-4 py-2 text-sm hover:underline"
          >
            <Spinner />
            <span className="min-w-0 flex-1 font-semibold">{nameOf(job)}</span>
            <span className="tabular-nums">{progressOf(job)}</span>
          </Link>
        </li>
      ))}
    </ul>
  );
}
