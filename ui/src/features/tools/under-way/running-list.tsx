import { Link } from 'react-router';
import type { Job } from '@/lib/api-types';
import { addressOf } from './running-address';
import { RunningRow } from './running-row';
import { detailsOf, nameOf } from './running-text';

/** What else is being made of an image, each with the way to where it is shown. */
export default function RunningList({ jobs }: { jobs: Job[] }) {
  if (jobs.length === 0) return null;
  return (
    <ul aria-label="Running" className="grid gap-2">
      {jobs.map((job) => (
        <li key={job.id}>
          <Link
            to={addressOf(job)}
            aria-label={`${nameOf(job)}: ${detailsOf(job)}`}
            className="flex min-h-11 items-center gap-3 rounded-md bg-accent-wash px-4 py-2 text-sm hover:underline"
          >
            <RunningRow job={job} />
          </Link>
        </li>
      ))}
    </ul>
  );
}
