import { create } from 'zustand';
import type { Result, ToolName } from '@/lib/api-types';
import { onSignOut } from '@/lib/sign-out-cleanup';

export type RunProblem =
  | { kind: 'not-enough-credits' }
  | { kind: 'refused'; detail: string; toastId: string };

/** A request that starts a run, until the API reports its outcome. */
export type Attempt<Request = unknown> = {
  request: Request;
  /** The same for equal requests, also after a reload. */
  name: string;
  /** Makes its repeats start a single run. */
  key: string;
  isRepeat: boolean;
  tool: ToolName;
  /** The image of the page that sent it. */
  pageImageId: string;
  /** The image that it was sent for. */
  imageId: string;
  /** Whether its answer is still to come. */
  isDue: boolean;
  /** The results of that image that were known before. */
  seen?: Result[] | undefined;
  /** Its job; before the answer, the first one like it. */
  jobId?: string;
  /** The problem that was shown when its answer was lost. */
  lost?: RunProblem;
};

const STORAGE_KEY = 'retouch-run-keys';

/** Outside the component tree: a request outlasts its page, and whoever comes back must not start a second run. */
export const useAttempts = create<Attempt[]>(() => []);

/** The keys of the requests that may have reached the API, by name. They survive a reload of the tab. */
let keys = readKeys();

onSignOut(() => {
  keys = {};
  useAttempts.setState([], true);
});

/** Adds an attempt, instead of the one that it repeats. */
export function addAttempt(attempt: Attempt) {
  useAttempts.setState((all) => [...all.filter(({ name }) => name !== attempt.name), attempt], true);
}

export function changeAttempt(attempt: Attempt, change: Partial<Attempt>) {
  Object.assign(attempt, change);
  useAttempts.setState((all) => [...all], true);
}

export function forgetAttempt(attempt: Attempt) {
  if (keyOf(attempt.name) === attempt.key) setKey(attempt.name, undefined);
  useAttempts.setState((all) => all.filter((one) => one !== attempt), true);
}

export const keyOf = (name: string): string | undefined => keys[name];

export function setKey(name: string, key: string | undefined) {
  keys = { ...keys, [name]: key };
  try {
    sessionStorage.setItem(STORAGE_KEY, JSON.stringify(keys));
  } catch {
    // Storage is full or blocked: the keys last as long as the page.
  }
}

function readKeys(): Record<string, string | undefined> {
  try {
    return JSON.parse(sessionStorage.getItem(STORAGE_KEY) ?? '{}');
  } catch {
    return {};
  }
}
