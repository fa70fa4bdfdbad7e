import { useState } from 'react';
import { useLocation } from 'react-router';

/** The id of the selected result: at first the one that a link named, if any. Null selects the first result. */
export function useSelectedResult() {
  const { state } = useLocation();
  return useState<string | null>(() => (state as { resultId?: string } | null)?.resultId ?? null);
}
