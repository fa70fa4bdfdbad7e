import { lazy, Suspense } from 'react';
import { useConsent, useNeedsConsent } from '@/lib/consent';

const ConsentBanner = lazy(() => import('./consent-banner'));

/** Most installations have nothing to ask, and never fetch the question. */
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
