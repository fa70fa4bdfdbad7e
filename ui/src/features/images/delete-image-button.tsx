import { useNavigate } from 'react-router';
import { ConfirmButton } from '@/components/confirm-button';
import { Icon } from '@/components/icon';
import { paths } from '@/lib/paths';
import { useDeleteImage } from './delete-image';

export function DeleteImageButton({ imageId }: { imageId: string }) {
  const navigate = useNavigate();
  const remove = useDeleteImage(imageId);
  return (
    <ConfirmButton
      look="danger"
      isBusy={remove.isPending || remove.isSuccess}
      question={{
        title: 'Delete this image and all its results?',
        text: 'The original and everything made from it are removed from this server for good. This cannot be undone.',
        action: 'Delete all',
        // Not for somebody who has gone elsewhere in the meantime: this is called only while the button is there.
        onConfirm: () => remove.mutate(undefined, { onSuccess: () => void navigate(paths.images) }),
      }}
    >
      <Icon name="trash" />
      DELETE ALL IMAGES
    </ConfirmButton>
  );
}
