import { useRef, useState } from 'react';
import { Button } from '@/components/button';
import { PageSection } from '@/components/page-section';
import { ShownOnce } from '@/components/shown-once';
import type { WebhookWithSecret } from '@/lib/api-types';
import { rich } from '@/lib/rich';
import { t } from '@/lib/translate';
import { useCreateWebhook } from './create-webhook';
import { WebhookForm } from './webhook-form';
import { WebhookList } from './webhook-list';

export default function WebhooksSection() {
  const create = useCreateWebhook();
  const [isAdding, setAdding] = useState(false);
  const [fresh, setFresh] = useState<WebhookWithSecret | null>(null);
  const add = useRef<HTMLButtonElement>(null);

  function close() {
    setAdding(false);
    // The button is back after the next render.
    setTimeout(() => add.current?.focus());
  }

  return (
    <PageSection
      title={t('Webhooks')}
      text={rich(
        'We call your addresses when a run ends or your credits are low, and sign each call as <link>Standard Webhooks</link> says. Then your programs need not ask.',
        {
          link: (text) => (
            <a
              href="https://www.standardwebhooks.com/"
              rel="noreferrer"
              className="font-semibold text-accent underline underline-offset-4"
            >
              {text}
            </a>
          ),
        },
      )}
    >
      {fresh && (
        <ShownOnce
          key={fresh.secret}
          label={t('The secret of {url}', { url: fresh.url })}
          hint={t('Your program verifies calls with it. Copy it now; we cannot show it again.')}
          secret={fresh.secret}
          onDone={() => setFresh(null)}
        />
      )}
      {isAdding ? (
        <WebhookForm
          save={async (wish) => {
            setFresh(await create.mutateAsync(wish));
            setAdding(false);
            // Drops the secret, which only the screen still needs.
            create.reset();
          }}
          onCancel={close}
        />
      ) : (
        <div>
          <Button ref={add} variant="secondary" onClick={() => setAdding(true)}>
            {t('Add a webhook')}
          </Button>
        </div>
      )}
      <WebhookList
        onRotated={setFresh}
        onDeleted={(webhookId) => setFresh((shown) => (shown?.id === webhookId ? null : shown))}
      />
    </PageSection>
  );
}
