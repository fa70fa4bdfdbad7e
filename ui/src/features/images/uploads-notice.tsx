import { useEffect } from 'react';
import { Link } from 'react-router';
import { Button } from '@/components/button';
import { ProgressBar } from '@/components/progress-bar';
import { failureText } from '@/lib/failure-text';
import { imageTexts } from './texts';
import { isSending, removeUpload, type Upload, useUploads } from './uploads';

/** The uploads whose pages have been left. Shown by the shell on every page. */
export function UploadsNotice() {
  const { uploads } = useUploads();
  const hasUnsent = uploads.some(isSending);

  useEffect(() => {
    if (!hasUnsent) return;
    const keep = (event: BeforeUnloadEvent) => event.preventDefault();
    window.addEventListener('beforeunload', keep);
    return () => window.removeEventListener('beforeunload', keep);
  }, [hasUnsent]);

  const left = uploads.filter(({ isAttended }) => !isAttended);
  if (left.length === 0) return null;
  return (
    <ul
      aria-label="Uploads"
      className="fixed bottom-4 left-4 z-40 grid w-72 max-w-[calc(100%-2rem)] gap-3 rounded-md border border-line bg-surface p-4 text-sm shadow-overlay"
    >
      {left.map((upload) => (
        <li key={upload.id} className="grid gap-2">
          <UploadState upload={upload} />
        </li>
      ))}
    </ul>
  );
}

function UploadState({ upload }: { upload: Upload }) {
  const { id, name, prefix, fraction, image, error } = upload;
  const close = () => removeUpload(id);
  return (
    <>
      <p role="status" className="wrap-anywhere">
        <span className="font-semibold">{name}</span>{' '}
        {image ? 'is uploaded' : error ? imageTexts.uploadFailed : 'is being uploaded'}
      </p>
      {error && <p className="text-danger">{failureText(error)}</p>}
      {isSending(upload) && (
        <ProgressBar label={`Upload of ${name}`} fraction={fraction < 1 ? fraction : null} />
      )}
      <div className="flex items-center justify-end gap-3">
        {image && (
          <Link
            to={`${prefix}/${image.id}`}
            className="font-semibold text-accent underline underline-offset-4"
            onClick={close}
          >
            Show it
          </Link>
        )}
        <Button variant="quiet" size="sm" onClick={close}>
          {isSending(upload) ? 'Cancel' : 'Close'}
        </Button>
      </div>
    </>
  );
}
