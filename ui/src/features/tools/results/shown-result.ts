import type { Result } from '@/lib/api-types';

/** A result as it is shown: of one that came without its job, little more than the picture is known. */
export type ShownResult = Pick<Result, 'url' | 'width' | 'height' | 'credits'> &
  Partial<Result> & { isNew?: boolean };
