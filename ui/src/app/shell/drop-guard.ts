import { useEffect } from 'react';

/** A file dropped where nothing takes it would replace the page with the picture. */
export function useDropGuard() {
  useEffect(() => {
    window.addEventListener('dragover', refuse);
    window.addEventListener('drop', refuse);
    return () => {
      window.removeEventListener('dragover', refuse);
      window.removeEventListener('drop', refuse);
    };
  }, []);
}

function refuse(event: DragEvent) {
  // Text may be dragged into a field, and what takes files has said so already.
  if (event.defaultPrevented || !event.dataTransfer?.types.includes('Files')) return;
  event.preventDefault();
  event.dataTransfer.dropEffect = 'none';
}
