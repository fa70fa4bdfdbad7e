import type { ReactNode } from 'react';
import type { Job } from '@/lib/api-types';
import { notify } from '@/lib/notify';
import { t } from '@/lib/translate';
import { jobPage } from './job-page';
import { jobTitle } from './job-text';

type Navigate = (to: string, state: unknown) => void;

/** Shows the outcome of a run whose page is not open, with a link to it. */
export function showRunToast(job: Job, navigate: Navigate) {
  const title = jobTitle(job);
  if (job.state === 'done') {
    const state = { resultId: job.results.at(-1)?.imageId };
    const link = <JobLink job={job} text={t('Show it')} navigate={(to) => navigate(to, state)} />;
    return showToast('success', job, t('{title} is ready', { title }), link);
  }
  if (job.state === 'cancelled')
    return showToast('info', job, t('{title} was canceled and cost nothing', { title }));
  const link = <JobLink job={job} text={t('Show the image')} navigate={(to) => navigate(to, null)} />;
  showToast('error', job, t('{title} failed and cost nothing', { title }), link);
}

function showToast(kind: Parameters<typeof notify>[0], { id }: Job, text: string, link?: ReactNode) {
  // Identified by the job: two runs with the same text are two toasts.
  void notify(
    kind,
    <p>
      {text}
      {link && <> · {link}</>}
    </p>,
    id,
  );
}

type JobLinkProps = { job: Job; text: string; navigate: (to: string) => void };

/** Toasts render outside the router, so their links navigate through a callback. */
function JobLink({ job, text, navigate }: JobLinkProps) {
  const to = jobPage(job);
  return (
    <a
      href={to}
      className="font-semibold underline underline-offset-4"
      onClick={(event) => {
        // With a modifier key the browser opens a new tab or window.
        if (event.ctrlKey || event.metaKey || event.shiftKey || event.altKey) return;
        event.preventDefault();
        navigate(to);
      }}
    >
      {text}
    </a>
  );
}
