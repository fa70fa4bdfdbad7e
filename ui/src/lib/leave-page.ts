/** If the browser has not left by then, the navigation has failed. */
const TIMEOUT_MS = 10_000;

/**
 * Navigates to another site. Resolves when the page is hidden, so that the Back button restores a page that is no
 * longer waiting, or after a timeout if the browser has stayed.
 */
export function leavePage(url: string): Promise<void> {
  return new Promise((resolve) => {
    window.addEventListener('pagehide', () => resolve(), { once: true });
    setTimeout(resolve, TIMEOUT_MS);
    window.location.assign(url);
  });
}
