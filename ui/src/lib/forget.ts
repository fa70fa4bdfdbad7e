const tasks = new Set<() => void>();

/** What keeps something of a person in memory says here how it is dropped. */
export function whenForgotten(task: () => void) {
  tasks.add(task);
}

/** Drops what this tab keeps of whoever signs out, besides the session itself and what was fetched for them. */
export function forgetPerson() {
  for (const task of tasks) task();
  try {
    // Also of what has not been loaded since the last reload, and so cannot drop it itself.
    for (const key of Object.keys(sessionStorage)) {
      if (key.startsWith('retouch-')) sessionStorage.removeItem(key);
    }
  } catch {
    // A storage that is blocked has kept nothing.
  }
}
