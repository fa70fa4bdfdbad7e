import { ApiError, connectionLost } from '@/lib/api-client';

/** A call that was not made, because something was missing that it needs. */
export class NotReady extends Error {}

/** An answer without a sentence of its own may be a whole page of some proxy. */
const LONGEST = 300;

/** Why a call failed, for a person: the API's sentence where it sent one. */
export function reasonOf(error: Error): string {
  if (error instanceof NotReady) return error.message;
  if (!(error instanceof ApiError)) return connectionLost;
  return error.detail || error.message.slice(0, LONGEST);
}
