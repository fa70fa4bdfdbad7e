import { PICTURE_DATABASE } from './sign-out-cleanup';

// A visitor's picture, kept in this browser: while they sign up, because the identity provider is another page, and
// beside the result of a free run, to compare them after a reload. A File does not survive either.

const STORE = 'pictures';
const KEY = 'picture';
/** The picture of a person who never came back is not offered to the next person. */
const MAX_AGE_MS = 3_600_000;

type Kept = { file: File; at: number };
/** `jobId` is known only to the tab that started the run. */
type KeptOriginal = Kept & { jobId: string };
const originalKey = (tool: string) => `original ${tool}`;

/** Keeps a picture, instead of an earlier one. If the browser refuses, it is lost, and the user chooses it again. */
export async function keepPicture(file: File): Promise<void> {
  const kept: Kept = { file, at: Date.now() };
  await inStore((store) => store.put(kept, KEY)).catch(() => {});
}

/** Returns the kept picture, once; null if there is none. */
export async function takePicture(): Promise<File | null> {
  try {
    const kept = (await inStore((store) => store.get(KEY))) as Kept | undefined;
    if (!kept) return null;
    await inStore((store) => store.delete(KEY));
    return Date.now() - kept.at < MAX_AGE_MS ? kept.file : null;
  } catch {
    return null;
  }
}

/** Keeps the original of a free run, instead of the original of the previous run. */
export async function keepOriginal(tool: string, jobId: string, file: File): Promise<void> {
  const kept: KeptOriginal = { file, jobId, at: Date.now() };
  await inStore((store) => store.put(kept, originalKey(tool))).catch(() => {});
}

/** Returns the original of a free run, as long as the server keeps its result; null if it is not here. */
export async function keptOriginal(tool: string, jobId: string): Promise<File | null> {
  try {
    const kept = (await inStore((store) => store.get(originalKey(tool)))) as KeptOriginal | undefined;
    if (!kept) return null;
    if (Date.now() - kept.at > MAX_AGE_MS) await forgetOriginal(tool);
    else if (kept.jobId === jobId) return kept.file;
    return null;
  } catch {
    return null;
  }
}

export async function forgetOriginal(tool: string): Promise<void> {
  await inStore((store) => store.delete(originalKey(tool))).catch(() => {});
}

/** Deletes pictures that nobody came back for. */
export async function forgetExpired(): Promise<void> {
  const keys = (await inStore((store) => store.getAllKeys())) as IDBValidKey[];
  for (const key of keys) {
    const { at } = (await inStore((store) => store.get(key))) as Kept;
    if (Date.now() - at > MAX_AGE_MS) await inStore((store) => store.delete(key));
  }
}

async function inStore(use: (store: IDBObjectStore) => IDBRequest): Promise<unknown> {
  const opening = indexedDB.open(PICTURE_DATABASE, 1);
  opening.onupgradeneeded = () => opening.result.createObjectStore(STORE);
  const database = await finished(opening);
  try {
    return await finished(use(database.transaction(STORE, 'readwrite').objectStore(STORE)));
  } finally {
    database.close();
  }
}

function finished<T>(request: IDBRequest<T>): Promise<T> {
  return new Promise((resolve, reject) => {
    request.onsuccess = () => resolve(request.result);
    request.onerror = () => reject(request.error);
  });
}
