import { useEffect, useId, useRef, useState } from 'react';
import { t } from '@/lib/translate';
import { Button } from './button';

type ShownOnceProps = { label: string; hint: string; secret: string; onDone: () => void };

/** Shows a secret that is readable only once, such as a new key. */
export function ShownOnce({ label, hint, secret, onDone }: ShownOnceProps) {
  const id = useId();
  const field = useRef<HTMLInputElement>(null);
  const [note, setNote] = useState('');

  // Leads keyboard and screen reader users to the secret.
  useEffect(() => {
    field.current?.focus();
    field.current?.select();
  }, []);

  async function copy() {
    setNote((await copyField(field.current)) ? t('Copied') : t('Press Ctrl+C or ⌘C to copy it'));
  }

  return (
    <div className="grid min-w-0 gap-3 rounded-lg border border-accent bg-accent-wash p-4 md:p-6">
      <label htmlFor={id} className="font-semibold wrap-anywhere">
        {label}
      </label>
      <p id={`${id}-hint`} className="text-sm">
        {hint}
      </p>
      <div className="flex flex-wrap gap-3">
        <input
          ref={field}
          id={id}
          readOnly
          value={secret}
          aria-describedby={`${id}-hint`}
          spellCheck={false}
          className="min-h-11 min-w-0 flex-1 basis-48 max-sm:basis-full rounded-md border border-control bg-surface px-3 font-mono text-sm"
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
