import { useQueryClient } from '@tanstack/react-query';
import { Suspense, useState } from 'react';
import { ConfirmButton } from '@/components/confirm-button';
import { Icon } from '@/components/icon';
import { lazyWithRetry } from '@/components/lazy-with-retry';
import { plainLook } from '@/features/finish/look';
import type { Finish } from '@/features/finish/use-finish';
import type { Result } from '@/lib/api-types';
import { loadWithRetry, prefetch } from '@/lib/load-with-retry';
import { t } from '@/lib/translate';
import { DownloadControl } from './download-control';
import { PanelButton } from './panel-button';
import { SourceNote } from './source-note';

const loadPanel = () => import('@/features/finish/finish-panel');
const FinishPanel = lazyWithRetry(loadPanel);
const loadFile = () => import('./result-file');

type ResultToolbarProps = {
  result: Result;
  /** Null if results of this tool are never transparent. */
  finish: Finish | null;
  isDeleting: boolean;
  onDelete: () => void;
};

/** The download of a result, how it is finished, and its deletion. */
export function ResultToolbar({ result, finish, isDeleting, onDelete }: ResultToolbarProps) {
  const queryClient = useQueryClient();
  const [isOpen, setOpen] = useState(false);
  const touchUp = finish?.touchUpOf(result.imageId);

  function toggle() {
    if (isOpen) finish?.setTouchingUp(false);
    setOpen(!isOpen);
  }

  return (
    <div className="@container grid gap-3">
      <DownloadControl
        // The failure of another result's file does not concern this one.
        key={result.imageId}
        fileOf={async (format) => {
          const { resultFile } = await loadWithRetry(loadFile);
          return resultFile(queryClient, result, finish?.look ?? plainLook, touchUp?.strokes ?? [], format);
        }}
        onSaved={() => finish?.setSaved(result.imageId)}
      >
        {finish && (
          <PanelButton
            name={t('Finish')}
            background={finish.look.background}
            isOpen={isOpen}
            onToggle={toggle}
            onPrefetch={prefetch(loadPanel)}
          />
        )}
        <span className="ml-auto">
          <ConfirmButton
            variant="danger"
            className="@max-2xl:px-3"
            isBusy={isDeleting}
            question={{
              title: t('Delete this result?'),
              text: t('This deletes it from the server for good. The original image stays.'),
              action: t('Delete'),
              onConfirm: onDelete,
            }}
          >
            <Icon name="trash" />
            <span className="@max-2xl:sr-only">{t('DELETE')}</span>
          </ConfirmButton>
        </span>
      </DownloadControl>
      <SourceNote result={result} />
      {finish && touchUp && isOpen && (
        <Suspense>
          <FinishPanel finish={finish} touchUp={touchUp} />
        </Suspense>
      )}
    </div>
  );
}
