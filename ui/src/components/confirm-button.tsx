import { type ComponentProps, Suspense, useRef, useState } from 'react';
import { lazyWithRetry } from '@/components/lazy-with-retry';
import { useOpenWhenLoaded } from '@/lib/use-open-when-loaded';
import { Button } from './button';
import type { Question } from './confirm-dialog';

const loadDialog = () => import('./confirm-dialog');
const ConfirmDialog = lazyWithRetry(loadDialog, null);

type ConfirmButtonProps = Omit<ComponentProps<typeof Button>, 'onClick'> & { question: Question };

/** A button that asks for confirmation. The dialog's code loads on hover or focus. */
export function ConfirmButton({ question, ...button }: ConfirmButtonProps) {
  const [isAsking, setAsking] = useState(false);
  const dialog = useOpenWhenLoaded(loadDialog);
  const trigger = useRef<HTMLButtonElement>(null);
  return (
    <>
      <Button
        ref={trigger}
        aria-haspopup="dialog"
        onPointerEnter={dialog.prefetch}
        onFocus={dialog.prefetch}
        onClick={() => dialog.open(() => setAsking(true))}
        {...button}
      />
      {isAsking && (
        <Suspense>
          <ConfirmDialog
            {...question}
            onClose={() => setAsking(false)}
            onClosed={() => trigger.current?.focus()}
          />
        </Suspense>
      )}
    </>
  );
}
