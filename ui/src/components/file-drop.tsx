import { type DragEvent, useEffect, useEffectEvent, useRef, useState } from 'react';
import { classNames } from '@/lib/class-names';
import { notifyInfo } from '@/lib/notify';
import { buttonStyle } from './button-style';
import { Icon } from './icon';

type FileDropProps = {
  hint: string;
  onFile: (file: File) => void;
  /** Accepts several files at once; without it, only the first is used. */
  onFiles?: (files: File[]) => void;
};

/**
 * Accepts image files by drag and drop, paste, or a click anywhere in the panel. The panel is a plain box, because an
 * input inside an element with role=button is invalid; the button extends its hit area over the panel.
 */
export function FileDrop({ hint, onFile, onFiles }: FileDropProps) {
  const input = useRef<HTMLInputElement>(null);
  const [isDraggedOver, setDraggedOver] = useState(false);

  usePaste(accept);

  function accept(files: FileList | null) {
    // Other files are ignored silently, as the product promises.
    const images = Array.from(files ?? []).filter(({ type }) => type.startsWith('image/'));
    const [first] = images;
    if (!first) return;
    if (images.length > 1 && onFiles) return onFiles(images);
    if (images.length > 1) notifyInfo(`Using only the first of ${images.length} images`);
    onFile(first);
  }

  function leave({ currentTarget, relatedTarget }: DragEvent) {
    // Also fires when the pointer moves between children of the panel.
    if (!(relatedTarget instanceof Node && currentTarget.contains(relatedTarget))) setDraggedOver(false);
  }

  function dragOver(event: DragEvent) {
    event.preventDefault();
    setDraggedOver(true);
  }

  function drop(event: DragEvent) {
    event.preventDefault();
    setDraggedOver(false);
    accept(event.dataTransfer.files);
  }

  return (
    // biome-ignore lint/a11y/noStaticElementInteractions: the button does the same.
    <div
      onDragOver={dragOver}
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
        <p className="text-lg font-semibold pointer-coarse:hidden">
          {isDraggedOver ? 'Drop it here' : onFiles ? 'Drop images here' : 'Drop an image here'}
        </p>
        {/* Touch screens have no drag and drop. */}
        <p className="hidden text-lg font-semibold pointer-coarse:block">
          {onFiles ? 'Choose images' : 'Choose an image'}
        </p>
        <p className="mt-1 text-sm text-soft">{hint}</p>
        <p className="mt-1 text-sm text-soft pointer-coarse:hidden">or paste one from the clipboard</p>
      </div>
      <input
        ref={input}
        type="file"
        accept="image/*"
        multiple={onFiles !== undefined}
        aria-label="Image file"
        hidden
        onChange={(event) => {
          accept(event.target.files);
          // Lets the user choose the same file again.
          event.target.value = '';
        }}
      />
      <button
        type="button"
        onClick={() => input.current?.click()}
        className={buttonStyle('primary', 'md', 'after:absolute after:inset-0')}
      >
        {onFiles ? 'Choose files' : 'Choose a file'}
      </button>
    </div>
  );
}

/** Handles files pasted anywhere on the page except into a text field. */
function usePaste(onFiles: (files: FileList) => void) {
  const paste = useEffectEvent((event: ClipboardEvent) => {
    const isInField = event.target instanceof Element && event.target.closest('input, textarea') !== null;
    if (isInField || !event.clipboardData?.files.length) return;
    event.preventDefault();
    onFiles(event.clipboardData.files);
  });
  useEffect(() => {
    const handlePaste = (event: ClipboardEvent) => paste(event);
    document.addEventListener('paste', handlePaste);
    return () => document.removeEventListener('paste', handlePaste);
  }, []);
}
