import type { Job } from '@/lib/api-types';
import { formatCount, formatLeft, formatPercent } from '@/lib/format';
import { secondsLeft } from '@/lib/job-state';
import { toolNames } from '@/lib/tool-names';

export function nameOf({ tool, factor }: Job): string {
  return factor ? `${toolNames[tool]} ${factor}X` : toolNames[tool];
}

/** How far it is, in a word or two. */
export function progressOf({ state, position, progress }: Job): string {
  if (state === 'running') return progress ? formatPercent(progress.fraction) : 'Starting';
  return position ? `${position} ahead` : 'Next in line';
}

/** All that is known of how far it is, for where there is room. */
export function detailsOf(job: Job): string {
  const count = job.state === 'running' ? formatCount(job.progress?.count) : null;
  const seconds = secondsLeft(job);
  const left = seconds === null ? null : formatLeft(seconds);
  return [progressOf(job), count, left].filter(Boolean).join(' · ');
}
