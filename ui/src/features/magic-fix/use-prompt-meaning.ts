import { useQuery } from '@tanstack/react-query';
import { useEffect, useState } from 'react';
import { api, unwrap } from '@/lib/api-client';
import { problemText } from '@/lib/failure-text';

/** How long the user must pause before we ask about the prompt, in milliseconds. */
const PAUSE_MS = 500;

/**
 * Asks the API what a prompt means and whether this server can follow it. Null until the API has answered. Nothing
 * waits for it, because a run checks the prompt again.
 */
export function usePromptMeaning(prompt: string, maxLetters: number) {
  const current = prompt.trim();
  const [settled, setSettled] = useState(current);
  useEffect(() => {
    const timer = setTimeout(() => setSettled(current), PAUSE_MS);
    return () => clearTimeout(timer);
  }, [current]);

  const { data } = useQuery({
    queryKey: ['prompt-meaning', settled],
    queryFn: async () => unwrap(await api.POST('/api/magic-images/meaning', { body: { prompt: settled } })),
    enabled: settled !== '' && [...settled].length <= maxLetters,
    staleTime: Number.POSITIVE_INFINITY,
    retry: false,
    // While the user types, the last meaning stands.
    placeholderData: (previous) => (current === '' ? undefined : previous),
  });

  if (!data || current === '') return null;
  const problem =
    settled === current && data.problem
      ? problemText({ detail: data.problem, code: 'prompt_not_possible' })
      : null;
  return { mode: data.mode, problem };
}
