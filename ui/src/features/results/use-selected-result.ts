import { useState } from 'react';
import { useLocation } from 'react-router';

/** The id of the selected result: at first the result that a link named, if any. Null selects the first result. */
export function useSelectedResult() {
  const { state } = useLocation();
  const named: string | null = state?.resultId ?? null;
  const [selectedId, select] = useState(named);
  // A link to another image of the same series leaves Magic Fix in place.
  const [lastNamed, setLastNamed] = useState(named);
  if (named !== lastNamed) {
    setLastNamed(named);
    if (named) select(named);
  }
  return [selectedId, select] as const;
}
