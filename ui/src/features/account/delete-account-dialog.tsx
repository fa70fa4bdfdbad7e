import * as Dialog from 'radix-ui/alert-dialog';
import { type FormEvent, useState } from 'react';
import { Button } from '@/components/button';
import { buttonStyle } from '@/components/button-style';
import { Notice } from '@/components/notice';
import { TextField } from '@/components/text-field';
import { credits } from '@/lib/format';
import { t } from '@/lib/translate';
import { useDeleteAccount } from './delete-account';
import { accountTexts } from './texts';

type DeleteAccountDialogProps = {
  email: string | null;
  creditsLeft: number | null;
  onClose: () => void;
  onClosed: () => void;
};

/** Lists the deleted and the kept data, and asks for a typed confirmation. */
export default function DeleteAccountDialog(props: DeleteAccountDialogProps) {
  const { email, creditsLeft, onClose, onClosed } = props;
  const [typed, setTyped] = useState('');
  const remove = useDeleteAccount();
  const isDeleting = remove.isPending || remove.isSuccess;

  function submit(event: FormEvent) {
    event.preventDefault();
    if (isConfirmed(typed, email) && !isDeleting) remove.mutate();
  }

  return (
    <Dialog.Root open onOpenChange={(isOpen) => !isOpen && !isDeleting && onClose()}>
      <Dialog.Portal>
        <Dialog.Overlay className="fixed inset-0 z-40 bg-scrim" />
        <Dialog.Content
          onCloseAutoFocus={onClosed}
          className="fixed top-1/2 left-1/2 z-50 max-h-[calc(100dvh-2rem)] w-[calc(100%-2rem)] max-w-lg -translate-1/2 overflow-y-auto rounded-lg bg-surface p-6 shadow-overlay"
        >
          <Dialog.Title className="text-lg font-semibold">{t('Delete your account?')}</Dialog.Title>
          <Dialog.Description className="mt-2 text-sm text-soft">
            {t('We delete it at once, and you cannot undo this.')}
          </Dialog.Description>
          <div className="mt-4 grid gap-4 text-sm">
            <div>
              <h3 className="font-semibold">{t('What we delete')}</h3>
              <ul className="mt-1 list-disc pl-5">
                <li>{t('all your images and their results; runs in progress are canceled')}</li>
                <li>
                  {creditsLeft === null
                    ? t('the credits you have left, without a refund')
                    : t('the {credits} you have left, without a refund', { credits: credits(creditsLeft) })}
                </li>
                <li>{t('your API keys, your webhooks, and your email address')}</li>
              </ul>
            </div>
            <div>
              <h3 className="font-semibold">{t('What we keep, without your name or address')}</h3>
              <ul className="mt-1 list-disc pl-5">
                <li>{t('the record of your orders and spent credits, for our accounting')}</li>
                <li>
                  {t(
                    'for twelve months, a code made from your sign-in, so that a new account gets no free credits',
                  )}
                </li>
              </ul>
            </div>
          </div>
          <form onSubmit={submit} className="mt-6 grid gap-4">
            <TextField
              label={email ? t('Type DELETE or your email address to confirm') : t('Type DELETE to confirm')}
              name="delete-confirmation"
              autoCapitalize="off"
              spellCheck={false}
              value={typed}
              disabled={isDeleting}
              onValue={setTyped}
            />
            {remove.isError && <Notice tone="error">{t(accountTexts.deleteFailed)}</Notice>}
            <div className="flex flex-wrap justify-end gap-3">
              <Dialog.Cancel disabled={isDeleting} className={buttonStyle('secondary')}>
                {t('Cancel')}
              </Dialog.Cancel>
              <Button
                type="submit"
                variant="danger"
                disabled={!isConfirmed(typed, email)}
                isBusy={isDeleting}
              >
                {t('Delete my account')}
              </Button>
            </div>
          </form>
        </Dialog.Content>
      </Dialog.Portal>
    </Dialog.Root>
  );
}

function isConfirmed(typed: string, email: string | null): boolean {
  const text = typed.trim();
  return text === 'DELETE' || (email !== null && text.toLowerCase() === email.toLowerCase());
}
