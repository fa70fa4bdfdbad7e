import { useState } from 'react';
import type { NewApiKey } from '@/lib/api-types';
import { ApiKeyList } from './api-key-list';
import { NewKey } from './new-key';
import { NewKeyForm } from './new-key-form';
import { Section } from './section';

export function ApiKeysSection() {
  const [made, setMade] = useState<NewApiKey | null>(null);
  return (
    <Section
      title="API keys"
      text={
        <>
          With a key a program edits images for you and spends your credits. It sends the key in the header{' '}
          <code>X-Api-Key</code>. <ApiReference />
        </>
      }
    >
      <NewKeyForm onMade={setMade} />
      {made && <NewKey key={made.id} made={made} onDone={() => setMade(null)} />}
      <ApiKeyList onRevoked={(keyId) => setMade((shown) => (shown?.id === keyId ? null : shown))} />
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
