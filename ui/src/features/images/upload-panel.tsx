import { useNavigate } from 'react-router';
import { Button } from '@/components/button';
import { ChosenPreview } from '@/components/chosen-preview';
import { FileDrop } from '@/components/file-drop';
import { Notice } from '@/components/notice';
import { ProgressBar } from '@/components/progress-bar';
import { useIncomingFiles } from '@/components/use-incoming-files';
import { useConfig } from '@/lib/env';
import { failureText } from '@/lib/failure-text';
import { formatBytes } from '@/lib/format';
import { useChosenImage } from '@/lib/use-chosen-image';
import { useKeptPicture } from '@/lib/use-kept-picture';
import { useUpload } from './use-upload';

type UploadPanelProps = {
  prefix: string;
  maxDimension: number;
  /** Accepts several files at once; without it, only the first is used. */
  onFiles?: (files: File[]) => void;
};

/** Chooses, previews and uploads an image, then navigates to `{prefix}/{newImageId}`. */
export function UploadPanel({ prefix, maxDimension, onFiles }: UploadPanelProps) {
  const { limits } = useConfig();
  const navigate = useNavigate();
  const { chosen, choose, clear } = useChosenImage(maxDimension);
  const upload = useUpload(prefix, (image) => void navigate(`${prefix}/${image.id}`));

  useKeptPicture(upload.isSending ? null : choose);
  const accept = useIncomingFiles(upload.isSending ? null : { onFile: choose, onFiles });

  if (!chosen) {
    return (
      <FileDrop
        hint={`Up to ${maxDimension} × ${maxDimension} px and ${formatBytes(limits.maxUploadBytes)}`}
        onFiles={accept}
        isMultiple={onFiles !== undefined}
      />
    );
  }

  function cancel() {
    upload.cancel();
    clear();
  }

  return (
    <div className="grid gap-4">
      <ChosenPreview chosen={chosen} />
      {upload.isSending && (
        <ProgressBar label="Upload" fraction={upload.fraction < 1 ? upload.fraction : null} />
      )}
      {upload.error && <Notice tone="error">{failureText(upload.error)}</Notice>}
      <div className="flex justify-end gap-3">
        <Button variant="secondary" onClick={cancel}>
          Cancel
        </Button>
        <Button
          disabled={!chosen.size || chosen.problem !== null}
          isBusy={upload.isSending}
          onClick={() => upload.start(chosen.file)}
        >
          Upload
        </Button>
      </div>
    </div>
  );
}
