import { useState } from 'react';
import type { NewApiKey } from '@/lib/api-types';
import { ApiKeyList } from './api-key-list';
import { NewKey } from './new-key';
import { NewKeyForm } from './new-key-form';
import { Section } from './section';

export function ApiKeysSection() {
  const [created, setCreated] = useState<NewApiKey | null>(null);
  return (
    <Section
      title="API keys"
      text={
        <>
          With an API key, a program can edit images for you and spend your credits. It sends the key in the
          header <code className="whitespace-nowrap">X-Api-Key</code>. <ApiReference />
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
      API reference
    </a>
  );
}
