import { expect, test } from 'vitest';
import type { Job } from '@/lib/api-types';
import { aJob } from '@/testing/builders';
import { fullProgress } from './job-text';

const running = (change: Partial<Job>) => aJob({ state: 'running', position: null, ...change });
const steps = { unit: 'steps' as const, done: 3, total: 20 };

test.each<[Job, string]>([
  [aJob({ position: 2, etaSeconds: 30 }), '2 ahead · about 30 s left'],
  [aJob({ position: 0, etaSeconds: null }), 'Next in line'],
  [aJob({ position: 0, waitsFor: 'turn', etaSeconds: 9 }), 'Next in line · about 9 s left'],
  [aJob({ position: 0, waitsFor: 'worker', etaSeconds: null }), 'Waiting for a worker'],
  [aJob({ position: 3, waitsFor: 'storage', etaSeconds: null }), 'Waiting for storage'],
  [aJob({ position: 0, waitsFor: 'retry', etaSeconds: null }), 'Trying again soon'],
  [running({ progress: null, etaSeconds: null }), 'Starting'],
  [
    running({ progress: { stage: 'infer', fraction: 0.15, count: steps }, etaSeconds: 150 }),
    '15% · Step 3 of 20 · about 3 min left',
  ],
  [
    running({ progress: { stage: 'infer', fraction: 0.12, count: { ...steps, done: 0 } }, etaSeconds: 1 }),
    '12% · Step 1 of 20',
  ],
  [running({ progress: { stage: 'decode', fraction: 0.05 }, etaSeconds: null }), '5%'],
])('case %#: shows what is known of the progress', (job, text) => {
  expect(fullProgress(job)).toBe(text);
});
