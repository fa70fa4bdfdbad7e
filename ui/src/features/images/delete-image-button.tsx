import { useNavigate } from 'react-router';
import { ConfirmButton } from '@/components/confirm-button';
import { Icon } from '@/components/icon';
import { paths } from '@/lib/paths';
import { t } from '@/lib/translate';
import { useDeleteImage } from './delete-image';

export function DeleteImageButton({ imageId }: { imageId: string }) {
  const navigate = useNavigate();
  const remove = useDeleteImage(imageId);
  return (
    <ConfirmButton
      variant="danger"
      className="max-sm:whitespace-normal"
      isBusy={remove.isPending || remove.isSuccess}
      question={{
        title: t('Delete this image and all its results?'),
        text: t(
          'This deletes the original and all its results from the server for good. You cannot undo this.',
        ),
        action: t('Delete all'),
        // This callback runs only while the button is mounted, so a user who has left the page stays there.
        onConfirm: () => remove.mutate(undefined, { onSuccess: () => void navigate(paths.images) }),
      }}
    >
      <Icon name="trash" />
      {t('DELETE ALL IMAGES')}
    </ConfirmButton>
  );
}
