import { ConfirmButton } from '@/components/confirm-button';
import { Icon } from '@/components/icon';
import type { Result } from '@/lib/api-types';
import type { Backdrop } from '@/lib/download';
import { DownloadRow } from './download-row';

type ResultToolbarProps = {
  result: Result;
  backdrop: Backdrop;
  onBackdrop: ((backdrop: Backdrop) => void) | null;
  isDeleting: boolean;
  onDelete: () => void;
};

export function ResultToolbar({ result, backdrop, onBackdrop, isDeleting, onDelete }: ResultToolbarProps) {
  return (
    <DownloadRow url={result.url} backdrop={backdrop} onBackdrop={onBackdrop}>
      <ConfirmButton
        // Closes an open question when the selection changes.
        key={result.imageId}
        variant="danger"
        isBusy={isDeleting}
        question={{
          title: 'Delete this result?',
          text: 'This deletes it from the server for good. The original image stays.',
          action: 'Delete',
          onConfirm: onDelete,
        }}
      >
        <Icon name="trash" />
        <span className="max-sm:sr-only">DELETE</span>
      </ConfirmButton>
    </DownloadRow>
  );
}
