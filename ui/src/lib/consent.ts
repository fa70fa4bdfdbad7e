import { create } from 'zustand';
import { useConfig } from './env';

export type Consent = 'undecided' | 'given' | 'refused';

const KEY = 'retouch-consent';

function stored(): Consent {
  try {
    const value = localStorage.getItem(KEY);
    return value === 'given' || value === 'refused' ? value : 'undecided';
  } catch {
    return 'undecided';
  }
}

/** Whether this browser may tell third parties anything. Only what `useNeedsConsent` names is ever asked about. */
export const useConsent = create<{ consent: Consent; decide: (consent: Consent) => void }>((set) => ({
  consent: stored(),
  decide: (consent) => {
    try {
      if (consent === 'undecided') localStorage.removeItem(KEY);
      else localStorage.setItem(KEY, consent);
    } catch {
      // A browser that keeps nothing asks again with the next visit.
    }
    set({ consent });
  },
}));

/** Retouch itself sets no cookie and calls nobody; an operator's advertising tag does. */
export function useNeedsConsent(): boolean {
  return Boolean(useConfig().site.adTag);
}
