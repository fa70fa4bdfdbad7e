import type { Job } from '@/lib/api-types';
import { formatCount, formatPercent, formatTimeLeft } from '@/lib/format';
import { toolName } from '@/lib/tool-names';
import { plural, t } from '@/lib/translate';
import { secondsLeft } from './job-state';
import { waits } from './waits';

/** The name of the tool and, for an upscale, the factor. */
export function jobTitle({ tool, factor }: Job): string {
  return factor ? `${toolName(tool)} ${factor}X` : toolName(tool);
}

/** The progress in a word or two. */
export function shortProgress({ state, position, progress, waitsFor }: Job): string {
  if (state === 'running') return progress ? formatPercent(progress.fraction) : t('Starting');
  if (waitsFor && waitsFor !== 'turn') return t(waits[waitsFor].short);
  return position ? plural(position, { one: '# ahead', other: '# ahead' }) : t('Next in line');
}

/** The progress with the tile or step count and the time left, as far as known. */
export function fullProgress(job: Job): string {
  const count = job.state === 'running' ? formatCount(job.progress?.count) : null;
  const seconds = secondsLeft(job);
  const left = seconds === null ? null : formatTimeLeft(seconds);
  return [shortProgress(job), count, left].filter(Boolean).join(' · ');
}
