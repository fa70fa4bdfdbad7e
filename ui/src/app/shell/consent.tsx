import { Suspense } from 'react';
import { lazyWithRetry } from '@/components/lazy-with-retry';
import { useConsent, useNeedsConsent } from '@/lib/consent';

const ConsentBanner = lazyWithRetry(() => import('./consent-banner'), null);

/** The banner loads only on installations that need consent. */
export function Consent() {
  const needsConsent = useNeedsConsent();
  const isUndecided = useConsent(({ consent }) => consent === 'undecided');
  return (
    needsConsent &&
    isUndecided && (
      <Suspense>
        <ConsentBanner />
      </Suspense>
    )
  );
}
