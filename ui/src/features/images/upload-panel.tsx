import { useEffect, useEffectEvent, useState } from 'react';
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
import { useUploadQueue } from './use-upload-queue';

type UploadPanelProps = {
  prefix: string;
  maxDimension: number;
  /** Accepts several files at once. Without it, the first is shown, and the others are uploaded with it. */
  onFiles?: ((files: File[]) => void) | undefined;
  /** Files that arrived before the panel was there. */
  arrived?: File[];
};

/** Chooses, previews and uploads an image, then navigates to `{prefix}/{newImageId}`. */
export function UploadPanel({ prefix, maxDimension, onFiles, arrived = [] }: UploadPanelProps) {
  const { limits } = useConfig();
  const navigate = useNavigate();
  const { chosen, choose, clear } = useChosenImage(maxDimension);
  const [others, setOthers] = useState<File[]>([]);
  const upload = useUpload(prefix, (image) => void navigate(`${prefix}/${image.id}`));
  const uploadAll = useUploadQueue(prefix, maxDimension);

  function chooseFirst([first, ...rest]: File[]) {
    if (!first) return;
    setOthers(rest);
    void choose(first);
  }

  const takeArrived = useEffectEvent(() => chooseFirst(arrived));
  useEffect(() => takeArrived(), []);
  const takers = { onFile: (file: File) => chooseFirst([file]), onFiles: onFiles ?? chooseFirst };
  useKeptPicture(upload.isSending ? null : takers.onFile);
  const accept = useIncomingFiles(upload.isSending ? null : takers);

  if (!chosen) {
    return (
      <FileDrop
        hint={`Up to ${maxDimension} × ${maxDimension} px and ${formatBytes(limits.maxUploadBytes)}`}
        onFiles={accept}
        isMultiple
      />
    );
  }

  function cancel() {
    upload.cancel();
    clear();
  }

  function send(file: File) {
    upload.start(file);
    // The shell shows these, and another attempt does not send them again.
    if (others.length > 0) uploadAll(others);
    setOthers([]);
  }

  const canSkip = chosen.problem !== null && others.length > 0;

  return (
    <div className="grid gap-4">
      <ChosenPreview chosen={chosen} />
      {upload.isSending && (
        <ProgressBar label="Upload" fraction={upload.fraction < 1 ? upload.fraction : null} />
      )}
      {upload.error && <Notice tone="error">{failureText(upload.error)}</Notice>}
      <div className="flex flex-wrap items-center justify-end gap-3">
        {others.length > 0 && <p className="grow text-sm text-soft">{othersText(others.length)}</p>}
        <Button variant="secondary" onClick={cancel}>
          Cancel
        </Button>
        {canSkip && (
          <Button variant="secondary" onClick={() => chooseFirst(others)}>
            Skip this image
          </Button>
        )}
        <Button
          disabled={!chosen.size || chosen.problem !== null}
          isBusy={upload.isSending}
          onClick={() => send(chosen.file)}
        >
          {others.length > 0 ? `Upload ${others.length + 1} images` : 'Upload'}
        </Button>
      </div>
    </div>
  );
}

function othersText(count: number): string {
  return count === 1
    ? 'This image opens here. The other one goes to My Images.'
    : `This image opens here. The other ${count} go to My Images.`;
}
