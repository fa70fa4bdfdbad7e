import { useEffect, useEffectEvent, useRef, useState } from 'react';
import { classNames } from '@/lib/class-names';
import { t } from '@/lib/translate';
import { MAX_SEARCH_LENGTH, searchOf } from './image-filter';

/** A pause in typing. */
const SEARCH_AFTER_MS = 250;

type ImageSearchProps = { search: string; onSearch: (search: string) => void; className?: string };

/** Searches the images by name while the user types. */
export function ImageSearch({ search, onSearch, className }: ImageSearchProps) {
  const [text, setText] = useState(search);
  const sent = useRef(search);

  function send() {
    const next = searchOf(text);
    if (next === sent.current) return;
    sent.current = next;
    onSearch(next);
  }

  // Changed from outside, as by the Back button.
  useEffect(() => {
    if (search === sent.current) return;
    sent.current = search;
    setText(search);
  }, [search]);

  const sendTyped = useEffectEvent(send);
  // biome-ignore lint/correctness/useExhaustiveDependencies: each change of the text starts a new pause.
  useEffect(() => {
    const timer = setTimeout(() => sendTyped(), SEARCH_AFTER_MS);
    return () => clearTimeout(timer);
  }, [text]);

  return (
    <input
      type="search"
      aria-label={t('Search by name')}
      placeholder={t('Search by name')}
      maxLength={MAX_SEARCH_LENGTH}
      value={text}
      onChange={(event) => setText(event.target.value)}
      onKeyDown={(event) => event.key === 'Enter' && send()}
      // A smaller text would make iOS zoom in.
      className={classNames(
        'min-h-11 min-w-0 rounded-md border border-control bg-surface px-3 text-base sm:text-sm',
        className,
      )}
    />
  );
}
