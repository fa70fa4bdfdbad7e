import { lazy, Suspense } from 'react';
import { useConsent, useNeedsConsent } from '@/lib/consent';

const ConsentBanner = lazy(() => import('./consent-banner'));

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
