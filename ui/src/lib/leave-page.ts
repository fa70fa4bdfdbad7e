/** How long the next page may take to begin before this one is taken to be staying. */
const PATIENCE_MS = 10_000;

/**
 * Sends the browser to another site. Resolves when this page is hidden, so that whoever comes Back finds
 * nothing waiting any more, or when the browser has stayed after all.
 */
export function leavePage(url: string): Promise<void> {
  return new Promise((resolve) => {
    window.addEventListener('pagehide', () => resolve(), { once: true });
    setTimeout(resolve, PATIENCE_MS);
    window.location.assign(url);
  });
}
