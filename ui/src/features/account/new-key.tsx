import { useEffect, useRef, useState } from 'react';
import { Button } from '@/components/button';
import type { NewApiKey } from '@/lib/api-types';

type NewKeyProps = { made: NewApiKey; onDone: () => void };

/** A key, the one time that it can be read. */
export function NewKey({ made, onDone }: NewKeyProps) {
  const field = useRef<HTMLInputElement>(null);
  const [note, setNote] = useState('');

  // Whoever made it by keyboard or hears the page is led to it.
  useEffect(() => {
    field.current?.focus();
    field.current?.select();
  }, []);

  async function copy() {
    setNote((await isCopied(field.current)) ? 'Copied' : 'Press Ctrl+C or ⌘C to copy it');
  }

  return (
    <div className="grid gap-3 rounded-lg border border-accent bg-accent-wash p-4 md:p-6">
      <label htmlFor="new-key" className="font-semibold">
        {`Your new key “${made.name}”`}
      </label>
      <p id="new-key-hint" className="text-sm">
        Copy it now. It is not kept here and cannot be shown again.
      </p>
      <div className="flex flex-wrap gap-3">
        <input
          ref={field}
          id="new-key"
          readOnly
          value={made.key}
          aria-describedby="new-key-hint"
          spellCheck={false}
          className="min-h-11 min-w-0 flex-1 basis-48 rounded-md border border-control bg-surface px-3 font-mono text-sm"
        />
        <Button onClick={copy}>Copy</Button>
        <Button look="secondary" onClick={onDone}>
          Done
        </Button>
      </div>
      <p role="status" className="text-sm">
        {note}
      </p>
    </div>
  );
}

/** The clipboard is closed to pages on a plain http address; there the old command still works. */
async function isCopied(field: HTMLInputElement | null): Promise<boolean> {
  if (!field) return false;
  field.focus();
  field.select();
  try {
    if (!navigator.clipboard) return document.execCommand('copy');
    await navigator.clipboard.writeText(field.value);
    return true;
  } catch {
    return false;
  }
}
