import { ConfirmButton } from '@/components/confirm-button';
import { Icon } from '@/components/icon';
import type { ResultItem } from '@/lib/api-types';
import { DownloadControl } from './download-control';

type ResultToolbarProps = { result: ResultItem; isDeleting: boolean; onDelete: () => void };

export function ResultToolbar({ result, isDeleting, onDelete }: ResultToolbarProps) {
  return (
    <div className="flex flex-wrap items-center justify-between gap-3">
      <DownloadControl url={result.url} />
      <ConfirmButton
        look="danger"
        isBusy={isDeleting}
        question={{
          title: 'Delete this result?',
          text: 'It is removed from this server for good. The original image stays.',
          action: 'Delete',
          onConfirm: onDelete,
        }}
      >
        <Icon name="trash" />
        <span className="max-sm:sr-only">DELETE</span>
      </ConfirmButton>
    </div>
  );
}
