import { BATCH_KEY } from '@/features/runs/run-toast';
import { newId } from '@/lib/new-id';

/** Returns an idempotency key for a run of a batch. */
export const newRunKey = () => `${BATCH_KEY}${newId()}`;
