import { Button } from '@/components/button';
import { ProgressBar } from '@/components/progress-bar';
import type { Tool } from '@/features/catalog/tool';
import type { Job } from '@/lib/api-types';
import { formatCount, formatPercent, formatSeconds } from '@/lib/format';
import { type Message, msg, plural, t } from '@/lib/translate';
import { secondsLeft } from './job-state';
import { waits } from './waits';

type Texts = Pick<Tool['texts'], 'postprocess' | 'patience'>;
type Stage = NonNullable<Job['progress']>['stage'];

/** The stages that every tool shares. */
const stages: Record<Exclude<Stage, 'postprocess'>, Message> = {
  fetch: msg('Getting your image'),
  decode: msg('Reading your image'),
  preprocess: msg('Preparing your image'),
  infer: msg('Working on your image'),
  encode: msg('Writing the result'),
  store: msg('Saving the result'),
};

type JobProgressProps = { job: Job; texts: Texts; onCancel?: () => void; isCanceling?: boolean };

/** The state of a job, in words for the user. */
export default function JobProgress({ job, texts, onCancel, isCanceling = false }: JobProgressProps) {
  const fraction = job.state === 'running' ? (job.progress?.fraction ?? null) : null;
  const count = job.state === 'running' ? formatCount(job.progress?.count) : null;
  return (
    <div className="grid gap-3 rounded-md border border-line bg-surface p-4 shadow-raised">
      <div className="flex min-h-10 items-center justify-between gap-4">
        <div className="text-sm">
          <div className="flex flex-wrap gap-x-2">
            {/* Only this is announced: the rest changes every second. */}
            <p role="status" className="font-semibold">
              {headline(job, texts)}
            </p>
            {count && <p className="text-soft tabular-nums">{count}</p>}
          </div>
          <p className="text-soft tabular-nums">{remaining(job, texts)}</p>
        </div>
        {onCancel && (
          <Button variant="secondary" size="sm" isBusy={isCanceling} onClick={onCancel}>
            {t('Cancel')}
          </Button>
        )}
      </div>
      <div className="flex items-center gap-3">
        <ProgressBar label={t('Progress')} fraction={fraction} detail={count} />
        {fraction !== null && (
          <span className="min-w-9 text-right text-sm text-soft tabular-nums" aria-hidden="true">
            {formatPercent(fraction)}
          </span>
        )}
      </div>
    </div>
  );
}

function headline({ state, position, progress, waitsFor }: Job, { postprocess }: Texts): string {
  if (state === 'running') return progress ? t({ ...stages, postprocess }[progress.stage]) : t('Starting');
  if (waitsFor && waitsFor !== 'turn') return t(waits[waitsFor].short);
  if (!position) return t('Next in line');
  return plural(position, { one: '# image is ahead of yours', other: '# images are ahead of yours' });
}

function remaining(job: Job, { patience }: Texts): string {
  const seconds = secondsLeft(job);
  if (job.waitsFor && job.waitsFor !== 'turn') return t(waits[job.waitsFor].long);
  if (seconds !== null) return t('About {time} left', { time: formatSeconds(seconds) });
  return job.state === 'queued' ? t('Waiting for a free worker') : t(patience);
}
