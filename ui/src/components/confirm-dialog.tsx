import * as Dialog from 'radix-ui/alert-dialog';
import { t } from '@/lib/translate';
import { buttonStyle } from './button-style';

export type Question = {
  title: string;
  text: string;
  action: string;
  /** The action destroys nothing. */
  isSafe?: boolean;
  onConfirm: () => void;
};

type ConfirmDialogProps = Question & { onClose: () => void; onClosed: () => void };

export default function ConfirmDialog(props: ConfirmDialogProps) {
  const { title, text, action, isSafe = false, onConfirm, onClose, onClosed } = props;
  return (
    <Dialog.Root defaultOpen onOpenChange={(isOpen) => !isOpen && onClose()}>
      <Dialog.Portal>
        <Dialog.Overlay className="fixed inset-0 z-40 bg-scrim" />
        <Dialog.Content
          onCloseAutoFocus={onClosed}
          className="fixed top-1/2 left-1/2 z-50 max-h-[calc(100dvh-2rem)] w-[calc(100%-2rem)] max-w-md -translate-1/2 overflow-y-auto rounded-lg bg-surface p-6 shadow-overlay"
        >
          <Dialog.Title className="text-lg font-semibold">{title}</Dialog.Title>
          <Dialog.Description className="mt-2 text-sm text-soft">{text}</Dialog.Description>
          <div className="mt-6 flex flex-wrap justify-end gap-3">
            <Dialog.Cancel className={buttonStyle('secondary')}>{t('Cancel')}</Dialog.Cancel>
            <Dialog.Action
              className={buttonStyle(
                'primary',
                'md',
                isSafe
                  ? ''
                  : 'bg-danger! text-on-danger! hover:bg-danger-strong! focus-visible:outline-danger',
              )}
              onClick={onConfirm}
            >
              {action}
            </Dialog.Action>
          </div>
        </Dialog.Content>
      </Dialog.Portal>
    </Dialog.Root>
  );
}
