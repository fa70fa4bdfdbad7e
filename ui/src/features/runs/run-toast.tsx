import type { ReactNode } from 'react';
import type { NavigateFunction } from 'react-router';
import type { Job } from '@/lib/api-types';
import { notify } from '@/lib/notify';
import { t } from '@/lib/translate';
import { jobPage } from './job-page';
import { jobTitle } from './job-text';

/** The start of the idempotency keys of a batch: only the tab with the batch reports how its runs end. */
export const BATCH_KEY = 'batch-';

/** Shows the outcome of a run whose page is not open, with a link to it. */
export function showRunToast(job: Job, navigate: NavigateFunction) {
  if (job.idempotencyKey?.startsWith(BATCH_KEY)) return;
  const title = jobTitle(job);
  const to = jobPage(job);
  if (job.state === 'done') {
    const state = { resultId: job.results.at(-1)?.imageId };
    const link = <ToastLink to={to} text={t('Show it')} onFollow={() => void navigate(to, { state })} />;
    return showToast('success', job.id, t('{title} is ready', { title }), link);
  }
  if (job.state === 'cancelled')
    return showToast('info', job.id, t('{title} was canceled and cost nothing', { title }));
  const link = <ToastLink to={to} text={t('Show the image')} onFollow={() => void navigate(to)} />;
  showToast('error', job.id, t('{title} failed and cost nothing', { title }), link);
}

/** Shows a toast with a link. Its id is not its text: two runs with the same text are two toasts. */
export function showToast(kind: Parameters<typeof notify>[0], id: string, text: string, link?: ReactNode) {
  void notify(
    kind,
    <p>
      {text}
      {link && <> · {link}</>}
    </p>,
    id,
  );
}

type ToastLinkProps = { to: string; text: string; onFollow: () => void };

/** Toasts render outside the router, so their links navigate through a callback. */
export function ToastLink({ to, text, onFollow }: ToastLinkProps) {
  return (
    <a
      href={to}
      className="font-semibold underline underline-offset-4"
      onClick={(event) => {
        // With a modifier key the browser opens a new tab or window.
        if (event.ctrlKey || event.metaKey || event.shiftKey || event.altKey) return;
        event.preventDefault();
        onFollow();
      }}
    >
      {text}
    </a>
  );
}
