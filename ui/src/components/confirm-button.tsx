import { type ComponentProps, lazy, Suspense, useRef, useState } from 'react';
import { Button } from './button';
import type { Question } from './confirm-dialog';

const loadDialog = () => import('./confirm-dialog');
const ConfirmDialog = lazy(loadDialog);

type ConfirmButtonProps = Omit<ComponentProps<typeof Button>, 'onClick'> & { question: Question };

/** A button that asks for confirmation. The dialog's code loads on hover or focus. */
export function ConfirmButton({ question, ...button }: ConfirmButtonProps) {
  const [isAsking, setAsking] = useState(false);
  const trigger = useRef<HTMLButtonElement>(null);
  return (
    <>
      <Button
        ref={trigger}
        aria-haspopup="dialog"
        onPointerEnter={loadDialog}
        onFocus={loadDialog}
        onClick={() => setAsking(true)}
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
