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
import { passFocus } from '@/lib/pass-focus';
import { pictureTypes } from '@/lib/picture-kind';
import { plural, t } from '@/lib/translate';
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
  /** Leaves the room to the pictures that are there. */
  isRow?: boolean;
};

/** Chooses, previews and uploads an image, then navigates to `{prefix}/{newImageId}`. */
export function UploadPanel(props: UploadPanelProps) {
  const { prefix, maxDimension, onFiles, arrived = [], isRow } = props;
  const { limits, features } = useConfig();
  const navigate = useNavigate();
  const { chosen, choose, clear } = useChosenImage(maxDimension);
  const [others, setOthers] = useState<File[]>([]);
  const upload = useUpload(prefix, (image) => void navigate(`${prefix}/${image.id}`));
  const uploadAll = useUploadQueue(prefix, maxDimension);

  function chooseFirst([first, ...rest]: File[]) {
    if (!first) return;
    // Clear the previous picture's error.
    upload.cancel();
    setOthers(rest);
    void choose(first);
  }

  const takeArrived = useEffectEvent(() => chooseFirst(arrived));
  useEffect(() => takeArrived(), []);
  const replaceFirst = (files: File[]) => chooseFirst([...files, ...others]);
  const takers = { onFile: (file: File) => replaceFirst([file]), onFiles: onFiles ?? replaceFirst };
  useKeptPicture(upload.isSending ? null : takers.onFile);
  const accept = useIncomingFiles(upload.isSending ? null : takers);

  if (!chosen) {
    return (
      <FileDrop
        hint={t('Up to {side} × {side} px and {bytes}', {
          side: maxDimension,
          bytes: formatBytes(limits.maxUploadBytes),
        })}
        types={pictureTypes(features)}
        onFiles={accept}
        isMultiple
        isRow={isRow}
      />
    );
  }

  function cancel() {
    upload.cancel();
    setOthers([]);
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
    <div ref={passFocus} className="grid gap-4">
      <ChosenPreview chosen={chosen} />
      {upload.isSending && (
        <ProgressBar label={t('Upload')} fraction={upload.fraction < 1 ? upload.fraction : null} />
      )}
      {upload.error && <Notice tone="error">{failureText(upload.error)}</Notice>}
      <div className="flex flex-wrap items-center justify-end gap-3">
        {others.length > 0 && <p className="grow text-sm text-soft">{othersText(others.length)}</p>}
        <Button variant="secondary" onClick={cancel}>
          {t('Cancel')}
        </Button>
        {canSkip && (
          <Button ref={passFocus} variant="secondary" onClick={() => chooseFirst(others)}>
            {t('Skip this image')}
          </Button>
        )}
        <Button disabled={!chosen.isReady} isBusy={upload.isSending} onClick={() => send(chosen.file)}>
          {others.length > 0
            ? plural(others.length + 1, { one: 'Upload # image', other: 'Upload # images' })
            : t('Upload')}
        </Button>
      </div>
    </div>
  );
}

function othersText(count: number): string {
  return plural(count, {
    one: 'This image opens here. The other one goes to My Images.',
    other: 'This image opens here. The other # go to My Images.',
  });
}
