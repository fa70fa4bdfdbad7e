import { create } from 'zustand';
import { useConfig } from './env';

export type Consent = 'undecided' | 'given' | 'refused';

const KEY = 'retouch-consent';

function readConsent(): Consent {
  try {
    const value = localStorage.getItem(KEY);
    return value === 'given' || value === 'refused' ? value : 'undecided';
  } catch {
    return 'undecided';
  }
}

/** The user's consent to third parties, stored in this browser. Asked for only if `useNeedsConsent` is true. */
export const useConsent = create<{ consent: Consent; decide: (consent: Consent) => void }>((set) => ({
  consent: readConsent(),
  decide: (consent) => {
    try {
      if (consent === 'undecided') localStorage.removeItem(KEY);
      else localStorage.setItem(KEY, consent);
    } catch {
      // Storage is blocked: the page asks again on the next visit.
    }
    set({ consent });
  },
}));

/** True if the operator has configured an advertising tag. Retouch itself sets no cookies and calls no third party. */
export function useNeedsConsent(): boolean {
  return Boolean(useConfig().site.adTag);
}
