import { useEffect } from 'react';

/** Ignores files dropped outside a drop area; the browser would open them instead of the page. */
export function useDropGuard() {
  useEffect(() => {
    const stop = new AbortController();
    const { signal } = stop;
    window.addEventListener('dragover', ignoreFiles, { signal });
    window.addEventListener('drop', ignoreFiles, { signal });
    return () => stop.abort();
  }, []);
}

function ignoreFiles(event: DragEvent) {
  // Drop areas have already handled the event, and text may be dragged into a field.
  if (event.defaultPrevented || !event.dataTransfer?.types.includes('Files')) return;
  event.preventDefault();
  event.dataTransfer.dropEffect = 'none';
}
