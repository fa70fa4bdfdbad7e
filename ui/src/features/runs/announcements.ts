import { msg } from '@/lib/translate';

/** Announced to screen readers. */
export const resultReady = msg('The result is ready');
