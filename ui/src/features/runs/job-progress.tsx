import { Button } from '@/components/button';
import { ProgressBar } from '@/components/progress-bar';
import type { Tool } from '@/features/catalog/tool';
import type { Job } from '@/lib/api-types';
import { formatCount, formatPercent, formatSeconds } from '@/lib/format';
import { secondsLeft } from './job-state';
import { waits } from './waits';

type Texts = Pick<Tool['texts'], 'postprocess' | 'patience'>;
type Stage = NonNullable<Job['progress']>['stage'];

/** The stages that every tool shares. */
const stages: Record<Exclude<Stage, 'postprocess'>, string> = {
  fetch: 'Getting your image',
  decode: 'Reading your image',
  preprocess: 'Preparing your image',
  infer: 'Working on your image',
  encode: 'Writing the result',
  store: 'Saving the result',
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
            Cancel
          </Button>
        )}
      </div>
      <div className="flex items-center gap-3">
        <ProgressBar label="Progress" fraction={fraction} detail={count} />
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
  if (state === 'running') return progress ? { ...stages, postprocess }[progress.stage] : 'Starting';
  if (waitsFor && waitsFor !== 'turn') return waits[waitsFor].short;
  if (!position) return 'Next in line';
  return position === 1 ? '1 image is ahead of yours' : `${position} images are ahead of yours`;
}

function remaining(job: Job, { patience }: Texts): string {
  const seconds = secondsLeft(job);
  if (job.waitsFor && job.waitsFor !== 'turn') return waits[job.waitsFor].long;
  if (seconds !== null) return `About ${formatSeconds(seconds)} left`;
  return job.state === 'queued' ? 'Waiting for a free worker' : patience;
}
