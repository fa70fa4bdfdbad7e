import { useState } from 'react';
import { useLocation } from 'react-router';

/** Which result is looked at: at first the one that a link led to, if any; null is the first of them. */
export function useSelected() {
  const { state } = useLocation();
  return useState<string | null>(() => (state as { resultId?: string } | null)?.resultId ?? null);
}
