// Texts for failed calls. The sentence for a failed run (`failure.detail`) comes from worker/src/job/failure.rs.
import { ApiError, connectionLost } from './api-client';
import { dataText, t } from './translate';

/** An error whose message the user may read. */
export class UserError extends Error {}

/** A response without a `detail` may be a proxy's whole error page; only its words help. */
const MAX_LENGTH = 300;
const MARKUP = /<head.*?<\/head>|<[^>]*>/gs;

/** Why a call failed, for the user: the API's `detail` if there is one. */
export function failureText(error: Error): string {
  if (error instanceof UserError) return error.message;
  if (!(error instanceof ApiError)) return t(connectionLost);
  return problemText(error) || error.message.replace(MARKUP, ' ').slice(0, MAX_LENGTH);
}

/** The API's sentence, or its code, in the current language. In English, the sentence as it came. */
export function problemText({ detail, code }: { detail: string; code?: string | null }): string {
  return dataText(detail, `code:${code}`);
}
