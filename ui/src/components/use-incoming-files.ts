import { useEffectEvent, useLayoutEffect } from 'react';
import { notifyInfo } from '@/lib/notify';
import { isPicture } from '@/lib/picture-kind';
import { isTextField } from '@/lib/text-field';
import { plural } from '@/lib/translate';

type Takers = {
  onFile: (file: File) => void;
  /** Accepts several files at once; without it, only the first is used. */
  onFiles?: ((files: File[]) => void) | undefined;
};

/** Whether files are dragged. A picture dragged from a page, such as a thumbnail of this one, is also HTML. */
const isFileDrag = ({ types }: DataTransfer) => types.includes('Files') && !types.includes('text/html');

/**
 * Handles image files that are pasted or dropped anywhere on the page, except in a text field. Null while the page can
 * take none. Returns the function that handles files from elsewhere, such as an input.
 */
export function useIncomingFiles(takers: Takers | null) {
  function accept(files: FileList | null) {
    // Other files are ignored silently, as the product promises.
    const images = Array.from(files ?? []).filter(isPicture);
    const [first] = images;
    if (!takers || !first) return;
    if (images.length > 1 && takers.onFiles) return takers.onFiles(images);
    if (images.length > 1)
      notifyInfo(
        plural(images.length, {
          one: 'Using only the first of # image',
          other: 'Using only the first of # images',
        }),
      );
    takers.onFile(first);
  }

  const paste = useEffectEvent((event: ClipboardEvent) => {
    if (!takers || isTextField(event.target) || !event.clipboardData?.files.length) return;
    event.preventDefault();
    accept(event.clipboardData.files);
  });

  const drag = useEffectEvent((event: DragEvent) => {
    const isTaken = takers !== null && event.dataTransfer !== null && isFileDrag(event.dataTransfer);
    markPage(isTaken && event.type === 'dragover');
    if (!isTaken) return;
    event.preventDefault();
    if (event.type === 'drop') accept(event.dataTransfer?.files ?? null);
  });

  // A plain effect may run after the page is visible, and miss a paste until then.
  useLayoutEffect(() => {
    const handlePaste = (event: ClipboardEvent) => paste(event);
    const handleDrag = (event: DragEvent) => drag(event);
    // Also fires when the pointer moves between elements.
    const handleLeave = ({ relatedTarget }: DragEvent) => relatedTarget === null && markPage(false);
    document.addEventListener('paste', handlePaste);
    document.addEventListener('dragover', handleDrag);
    document.addEventListener('dragleave', handleLeave);
    document.addEventListener('drop', handleDrag);
    return () => {
      markPage(false);
      document.removeEventListener('paste', handlePaste);
      document.removeEventListener('dragover', handleDrag);
      document.removeEventListener('dragleave', handleLeave);
      document.removeEventListener('drop', handleDrag);
    };
  }, []);

  return accept;
}

/** Shows on the whole page that it takes the files that are dragged over it. */
function markPage(isOver: boolean) {
  document.documentElement.toggleAttribute('data-dropping', isOver);
}
