import { useEffect, useRef, useState } from 'react';
import { Button } from '@/components/button';
import type { NewApiKey } from '@/lib/api-types';
import { t } from '@/lib/translate';

type NewKeyProps = { created: NewApiKey; onDone: () => void };

/** Shows a new key, which is readable only once. */
export function NewKey({ created, onDone }: NewKeyProps) {
  const field = useRef<HTMLInputElement>(null);
  const [note, setNote] = useState('');

  // Leads keyboard and screen reader users to the key.
  useEffect(() => {
    field.current?.focus();
    field.current?.select();
  }, []);

  async function copy() {
    setNote((await copyField(field.current)) ? t('Copied') : t('Press Ctrl+C or ⌘C to copy it'));
  }

  return (
    <div className="grid gap-3 rounded-lg border border-accent bg-accent-wash p-4 md:p-6">
      <label htmlFor="new-key" className="font-semibold">
        {t('Your new key “{name}”', { name: created.name })}
      </label>
      <p id="new-key-hint" className="text-sm">
        {t('Copy it now. We do not store it and cannot show it again.')}
      </p>
      <div className="flex flex-wrap gap-3">
        <input
          ref={field}
          id="new-key"
          readOnly
          value={created.key}
          aria-describedby="new-key-hint"
          spellCheck={false}
          className="min-h-11 min-w-0 flex-1 basis-48 rounded-md border border-control bg-surface px-3 font-mono text-sm"
        />
        <Button onClick={copy}>{t('Copy')}</Button>
        <Button variant="secondary" onClick={onDone}>
          {t('Done')}
        </Button>
      </div>
      <p role="status" className="text-sm">
        {note}
      </p>
    </div>
  );
}

/** Returns false if copying failed. Plain http pages have no clipboard API, only the old command. */
async function copyField(field: HTMLInputElement | null): Promise<boolean> {
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
