import { plural, t } from '@/lib/translate';
import type { BatchItem } from './batch-store';

/** How many of the files are done, failed, and canceled. */
export function batchSummary(items: BatchItem[]): string {
  const count = (kind: BatchItem['state']['kind']) => items.filter(({ state }) => state.kind === kind).length;
  const total = items.length - count('rejected');
  return [
    total > 0
      ? t('{done} of {total} done', { done: count('done'), total })
      : t('None of these files was sent'),
    count('failed') > 0 && plural(count('failed'), { one: '# failed', other: '# failed' }),
    count('unpaid') > 0 && plural(count('unpaid'), { one: '# not started', other: '# not started' }),
    count('canceled') > 0 && plural(count('canceled'), { one: '# canceled', other: '# canceled' }),
  ]
    .filter(Boolean)
    .join(' · ');
}
