import { Suspense, useRef, useState } from 'react';
import { Button } from '@/components/button';
import { Icon } from '@/components/icon';
import { lazyWithRetry } from '@/components/lazy-with-retry';
import { PageSection } from '@/components/page-section';
import { t } from '@/lib/translate';
import { useOpenWhenLoaded } from '@/lib/use-open-when-loaded';

const loadDialog = () => import('./delete-account-dialog');
const DeleteAccountDialog = lazyWithRetry(loadDialog, null);

type DeleteAccountSectionProps = { email: string | null; creditsLeft: number | null };

export function DeleteAccountSection({ email, creditsLeft }: DeleteAccountSectionProps) {
  const [isAsking, setAsking] = useState(false);
  const dialog = useOpenWhenLoaded(loadDialog);
  const trigger = useRef<HTMLButtonElement>(null);
  return (
    <PageSection
      title={t('Delete my account')}
      text={t(
        'Deletes all your images and credits, at once and for good. First download what you want to keep.',
      )}
    >
      <div>
        <Button
          ref={trigger}
          variant="danger"
          aria-haspopup="dialog"
          onPointerEnter={dialog.prefetch}
          onFocus={dialog.prefetch}
          onClick={() => dialog.open(() => setAsking(true))}
        >
          <Icon name="trash" />
          {t('Delete my account')}
        </Button>
      </div>
      {isAsking && (
        <Suspense>
          <DeleteAccountDialog
            email={email}
            creditsLeft={creditsLeft}
            onClose={() => setAsking(false)}
            onClosed={() => trigger.current?.focus()}
          />
        </Suspense>
      )}
    </PageSection>
  );
}
