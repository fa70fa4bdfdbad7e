import type { Result } from '@/lib/api-types';

/** A result to display. A result that arrived without its job has little more than its picture. */
export type DisplayedResult = Pick<Result, 'url' | 'width' | 'height' | 'credits'> &
  Partial<Result> & { isNew?: boolean };
