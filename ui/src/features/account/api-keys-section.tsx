import { useState } from 'react';
import type { NewApiKey } from '@/lib/api-types';
import { rich } from '@/lib/rich';
import { t } from '@/lib/translate';
import { ApiKeyList } from './api-key-list';
import { NewKey } from './new-key';
import { NewKeyForm } from './new-key-form';
import { Section } from './section';

const HEADER = 'X-Api-Key';

export function ApiKeysSection() {
  const [created, setCreated] = useState<NewApiKey | null>(null);
  return (
    <Section
      title={t('API keys')}
      text={
        <>
          {rich(
            'With an API key, a program can edit images for you and spend your credits. It sends the key in the header {header}.',
            { header: <code className="whitespace-nowrap">{HEADER}</code> },
          )}{' '}
          <ApiReference />
        </>
      }
    >
      <NewKeyForm onCreated={setCreated} />
      {created && <NewKey key={created.id} created={created} onDone={() => setCreated(null)} />}
      <ApiKeyList onRevoked={(keyId) => setCreated((shown) => (shown?.id === keyId ? null : shown))} />
    </Section>
  );
}

function ApiReference() {
  return (
    <a href="/api/docs" className="font-semibold text-accent underline underline-offset-4">
      {t('API reference')}
    </a>
  );
}
