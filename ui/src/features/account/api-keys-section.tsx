import { useState } from 'react';
import { PageSection } from '@/components/page-section';
import { ShownOnce } from '@/components/shown-once';
import type { NewApiKey } from '@/lib/api-types';
import { rich } from '@/lib/rich';
import { t } from '@/lib/translate';
import { ApiKeyList } from './api-key-list';
import { NewKeyForm } from './new-key-form';

const HEADER = 'X-Api-Key';

export function ApiKeysSection() {
  const [created, setCreated] = useState<NewApiKey | null>(null);
  return (
    <PageSection
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
      {created && (
        <ShownOnce
          key={created.id}
          label={t('Your new key “{name}”', { name: created.name })}
          hint={t('Copy it now. We do not store it and cannot show it again.')}
          secret={created.key}
          onDone={() => setCreated(null)}
        />
      )}
      <ApiKeyList onRevoked={(keyId) => setCreated((shown) => (shown?.id === keyId ? null : shown))} />
    </PageSection>
  );
}

function ApiReference() {
  return (
    <a href="/api/docs" className="font-semibold text-accent underline underline-offset-4">
      {t('API reference')}
    </a>
  );
}
