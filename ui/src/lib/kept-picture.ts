// A visitor's picture, kept in this browser while they sign up: the identity provider is another page, and a File does
// not survive the way there and back.

const DATABASE = 'retouch-kept-picture';
const STORE = 'pictures';
const KEY = 'picture';
/** A picture of somebody who never came back is not offered to the next person. */
const MAX_AGE_MS = 3_600_000;

/** The event of this window that offers the kept picture to the page that is open. */
export const PICTURE_KEPT = 'retouch-picture-kept';

type Kept = { file: File; at: number };

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

async function inStore(use: (store: IDBObjectStore) => IDBRequest): Promise<unknown> {
  const opening = indexedDB.open(DATABASE, 1);
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
