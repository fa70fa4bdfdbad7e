/** Returns the path if `address` is a path on this origin, otherwise null: prevents open redirects. */
export function pathWithin(address: unknown): string | null {
  if (typeof address !== 'string' || !/^\/(?![/\\])/.test(address)) return null;
  try {
    const { origin, pathname, search } = new URL(address, window.location.origin);
    return origin === window.location.origin && !pathname.startsWith('//') ? pathname + search : null;
  } catch {
    return null;
  }
}
