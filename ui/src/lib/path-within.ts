/** A path of this origin, or nothing: an address that leads elsewhere is not gone to. */
export function pathWithin(address: unknown): string | null {
  if (typeof address !== 'string' || !/^\/(?![/\\])/.test(address)) return null;
  try {
    const { origin, pathname, search } = new URL(address, window.location.origin);
    return origin === window.location.origin && !pathname.startsWith('//') ? pathname + search : null;
  } catch {
    return null;
  }
}
