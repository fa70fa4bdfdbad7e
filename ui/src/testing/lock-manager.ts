/** Web Locks, which jsdom lacks: exclusive ones, in the order of the requests. */
export function aLockManager(): Pick<LockManager, 'request'> {
  const last = new Map<string, Promise<unknown>>();
  return {
    request: (name: string, ...rest: unknown[]) => {
      const work = rest.at(-1) as () => Promise<unknown>;
      const turn = (last.get(name) ?? Promise.resolve()).then(work);
      last.set(
        name,
        turn.catch(() => {}),
      );
      return turn;
    },
  } as Pick<LockManager, 'request'>;
}
