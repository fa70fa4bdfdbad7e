/**
 * Runs `work` in one tab of the browser at a time. A browser opens few connections to one server, and tabs share them.
 * The tab that was shown last leads, because browsers suspend hidden tabs; if it closes, another one follows.
 */
export function leadTabs(name: string, signal: AbortSignal, work: (leading: AbortSignal) => Promise<void>) {
  // Only missing on a page that is not served securely: every tab works for itself.
  if (!navigator.locks) return void work(signal);
  let attempt = new AbortController();

  function lead(isShown: boolean) {
    attempt.abort();
    const current = new AbortController();
    attempt = current;
    const options = isShown ? { steal: true } : { signal: current.signal };
    navigator.locks
      .request(name, options, () => work(current.signal))
      // Rejected by a tab that was shown later.
      .catch(() => current === attempt && !signal.aborted && lead(false));
  }

  document.addEventListener('visibilitychange', () => isVisible() && lead(true), { signal });
  signal.addEventListener('abort', () => attempt.abort());
  lead(isVisible());
}

const isVisible = () => document.visibilityState === 'visible';
