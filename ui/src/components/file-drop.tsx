import { useRef } from 'react';
import { classNames } from '@/lib/class-names';
import { passFocus } from '@/lib/pass-focus';
import { t } from '@/lib/translate';
import { buttonStyle } from './button-style';
import { Icon } from './icon';

type FileDropProps = {
  hint: string;
  /** What the file dialog offers. */
  types: string;
  onFiles: (files: FileList | null) => void;
  isMultiple?: boolean;
  /** Low, for pages whose pictures matter more. */
  isRow?: boolean;
};

/**
 * Accepts image files by a click anywhere in the panel, and shows that they can be dropped: the page accepts them
 * everywhere (`useIncomingFiles`). The panel is a plain box, because an input
 * inside an element with role=button is invalid; the button extends its hit area over the panel.
 */
export function FileDrop({ hint, types, onFiles, isMultiple = false, isRow = false }: FileDropProps) {
  const input = useRef<HTMLInputElement>(null);
  return (
    <div
      ref={passFocus}
      className={classNames(
        'relative flex flex-col items-center justify-center gap-4 rounded-lg border-2 border-dashed px-6 text-center transition-colors',
        isRow ? 'py-5 sm:flex-row sm:justify-start sm:text-left' : 'min-h-72 py-6',
        'border-control bg-surface hover:bg-accent-wash in-data-dropping:border-accent in-data-dropping:bg-accent-wash',
      )}
    >
      <span
        className={classNames(
          'grid shrink-0 place-items-center rounded-full bg-accent-wash text-accent',
          isRow ? 'size-11 max-sm:hidden' : 'size-14',
        )}
      >
        <Icon name="upload" className="size-6" />
      </span>
      <div>
        <p className="text-lg font-semibold pointer-coarse:hidden">
          {isMultiple ? t('Drop images here') : t('Drop an image here')}
        </p>
        {/* Touch screens have no drag and drop. */}
        <p className="hidden text-lg font-semibold pointer-coarse:block">
          {isMultiple ? t('Choose images') : t('Choose an image')}
        </p>
        <p className="mt-1 text-sm text-soft">{hint}</p>
        <p className="mt-1 text-sm text-soft pointer-coarse:hidden">{t('or paste one from the clipboard')}</p>
      </div>
      <input
        ref={input}
        type="file"
        accept={types}
        multiple={isMultiple}
        aria-label={t('Image file')}
        hidden
        onChange={(event) => {
          onFiles(event.target.files);
          // Lets the user choose the same file again.
          event.target.value = '';
        }}
      />
      <button
        type="button"
        onClick={() => input.current?.click()}
        className={buttonStyle(
          'primary',
          'md',
          classNames('after:absolute after:inset-0', isRow && 'sm:ml-auto'),
        )}
      >
        {isMultiple ? t('Choose files') : t('Choose a file')}
      </button>
    </div>
  );
}
