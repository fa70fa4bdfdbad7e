import { type DragEvent, useEffect, useRef, useState } from 'react';
import { classNames } from '@/lib/class-names';
import { buttonStyle } from './button-style';
import { Icon } from './icon';

type FileDropProps = { hint: string; onFile: (file: File) => void };

/**
 * Drag and drop, or a click anywhere in the panel. The panel itself is a plain box: the real button
 * spreads its hit area over it, because an input inside an element with role=button is no valid markup.
 */
export function FileDrop({ hint, onFile }: FileDropProps) {
  const input = useRef<HTMLInputElement>(null);
  const [isDraggedOver, setDraggedOver] = useState(false);

  useDropOnlyInside();

  function take(files: FileList | null) {
    // Anything that is no image is ignored silently.
    const file = Array.from(files ?? []).find(({ type }) => type.startsWith('image/'));
    if (file) onFile(file);
  }

  function leave({ currentTarget, relatedTarget }: DragEvent) {
    // Also fired on the way from one child to the next, which is no leaving.
    if (!(relatedTarget instanceof Node && currentTarget.contains(relatedTarget))) setDraggedOver(false);
  }

  function drop({ dataTransfer }: DragEvent) {
    setDraggedOver(false);
    take(dataTransfer.files);
  }

  return (
    // biome-ignore lint/a11y/noStaticElementInteractions: dropping is an extra; the button does the same.
    <div
      onDragOver={() => setDraggedOver(true)}
      onDragLeave={leave}
      onDrop={drop}
      className={classNames(
        'relative flex min-h-72 flex-col items-center justify-center gap-4 rounded-lg border-2 border-dashed p-6 text-center transition-colors',
        isDraggedOver ? 'border-accent bg-accent-wash' : 'border-control bg-surface hover:bg-accent-wash',
      )}
    >
      <span className="grid size-14 place-items-center rounded-full bg-accent-wash text-accent">
        <Icon name="upload" className="size-6" />
      </span>
      <div>
        <p className="text-lg font-semibold">{isDraggedOver ? 'Drop it here' : 'Drop an image here'}</p>
        <p className="mt-1 text-sm text-soft">{hint}</p>
      </div>
      <input
        ref={input}
        type="file"
        accept="image/*"
        aria-label="Image file"
        hidden
        onChange={(event) => {
          take(event.target.files);
          // The same file once more is a choice too.
          event.target.value = '';
        }}
      />
      <button
        type="button"
        onClick={() => input.current?.click()}
        className={buttonStyle('primary', 'md', 'after:absolute after:inset-0')}
      >
        Choose a file
      </button>
    </div>
  );
}

/** A file dropped beside the panel would replace the page with the picture. */
function useDropOnlyInside() {
  useEffect(() => {
    const stop = (event: Event) => event.preventDefault();
    document.addEventListener('dragover', stop);
    document.addEventListener('drop', stop);
    return () => {
      document.removeEventListener('dragover', stop);
      document.removeEventListener('drop', stop);
    };
  }, []);
}
