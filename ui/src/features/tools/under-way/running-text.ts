import type { Job } from '@/lib/api-types';
import { toolNames } from '@/lib/tool-names';

export function nameOf({ tool, factor }: Job): string {
  return factor ? `${toolNames[tool]} ${factor}X` : toolNames[tool];
}

export function progressOf({ state, position, progress }: Job): string {
  if (state === 'running') return progress ? `${Math.round(progress.fraction * 100)}%` : 'Starting';
  return position ? `${position} ahead` : 'Next in line';
}
