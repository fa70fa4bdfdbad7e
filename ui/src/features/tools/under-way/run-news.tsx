import type { ReactNode } from 'react';
import type { Job } from '@/lib/api-types';
import { notify } from '@/lib/notify';
import { useBatches } from '../batch/batch';
import { addressOf } from './running-address';
import { nameOf } from './running-text';

type Open = (to: string, state: unknown) => void;

/** Whether a run is one of several that were started at once. */
export function isOfBatch(id: string): boolean {
  return Object.values(useBatches.getState()).some((batch) => batch?.items.some(({ jobId }) => jobId === id));
}

/** What became of a run whose page is not the one shown, and the way there. */
export function tellOfRun(job: Job, open: Open) {
  const name = nameOf(job);
  if (job.state === 'done') {
    const state = { resultId: job.results.at(-1)?.imageId };
    return say('success', job, `${name} is ready`, <Way job={job} open={(to) => open(to, state)} />);
  }
  if (job.state === 'cancelled') return say('info', job, `${name} was cancelled and cost nothing`);
  say('error', job, `${name} failed and cost nothing`, <Way job={job} open={(to) => open(to, null)} />);
}

function say(kind: Parameters<typeof notify>[0], { id }: Job, text: string, way?: ReactNode) {
  // Two runs of the same name are two pieces of news.
  void notify(
    kind,
    <p>
      {text}
      {way && <> · {way}</>}
    </p>,
    id,
  );
}

/** Toasts hang outside of the router: their links lead on by what they are given. */
function Way({ job, open }: { job: Job; open: (to: string) => void }) {
  const to = addressOf(job);
  return (
    <a
      href={to}
      className="font-semibold underline underline-offset-4"
      onClick={(event) => {
        // With one of these keys the browser opens another tab or window.
        if (event.ctrlKey || event.metaKey || event.shiftKey || event.altKey) return;
        event.preventDefault();
        open(to);
      }}
    >
      {job.state === 'done' ? 'Show it' : 'Show the image'}
    </a>
  );
}
