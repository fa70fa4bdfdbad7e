import { Link } from 'react-router';
import type { Job } from '@/lib/api-types';
import { t } from '@/lib/translate';
import { jobPage } from './job-page';
import { JobRow } from './job-row';
import { fullProgress, jobTitle } from './job-text';

/** Jobs on an image, each with a link to the page that shows it. */
export default function ActiveJobsList({ jobs }: { jobs: Job[] }) {
  if (jobs.length === 0) return null;
  return (
    <ul aria-label={t('Running')} className="grid gap-2">
      {jobs.map((job) => (
        <li key={job.id}>
          <Link
            to={jobPage(job)}
            aria-label={`${jobTitle(job)}: ${fullProgress(job)}`}
            className="flex min-h-11 items-center gap-3 rounded-md bg-accent-wash px-4 py-2 text-sm hover:underline"
          >
            <JobRow job={job} />
          </Link>
        </li>
      ))}
    </ul>
  );
}
