import { type FormEvent, useRef, useState } from 'react';
import { Button } from '@/components/button';
import { FieldProblem } from '@/components/field-problem';
import { TextField } from '@/components/text-field';
import { ApiError, connectionLost } from '@/lib/api-client';
import type { NewApiKey } from '@/lib/api-types';
import { failureText } from '@/lib/failure-text';
import { t } from '@/lib/translate';
import { useCreateApiKey } from './create-api-key';
import { accountTexts } from './texts';

const MAX_NAME_LENGTH = 60;

export function NewKeyForm({ onCreated }: { onCreated: (created: NewApiKey) => void }) {
  const create = useCreateApiKey();
  const field = useRef<HTMLInputElement>(null);
  const isSending = useRef(false);
  const [name, setName] = useState('');
  const [problem, setProblem] = useState<string | null>(null);

  function submit(event: FormEvent) {
    event.preventDefault();
    // The second click of a double click arrives before the next render.
    if (isSending.current) return;
    if (!name.trim()) return reject(t('A key needs a name'));
    setProblem(null);
    isSending.current = true;
    create.mutate(name.trim(), {
      onSuccess: (created) => {
        setName('');
        onCreated(created);
        // Drops the full key, which only the screen still needs.
        create.reset();
      },
      onError: (error) => reject(problemText(error)),
      onSettled: () => {
        isSending.current = false;
      },
    });
  }

  function reject(reason: string) {
    setProblem(reason);
    field.current?.focus();
  }

  return (
    <form onSubmit={submit} noValidate className="grid gap-2">
      <TextField
        ref={field}
        label={t('Name of a new key')}
        name="key-name"
        maxLength={MAX_NAME_LENGTH}
        value={name}
        placeholder={t('What will use it?')}
        aria-required
        problemId={problem && 'key-name-problem'}
        onValue={(next) => {
          setName(next);
          setProblem(null);
        }}
      >
        <Button type="submit" isBusy={create.isPending}>
          {t('Create key')}
        </Button>
      </TextField>
      {problem && <FieldProblem id="key-name-problem">{problem}</FieldProblem>}
    </form>
  );
}

function problemText(error: Error): string {
  if (!(error instanceof ApiError)) return t(connectionLost);
  return error.status < 500 && error.detail ? failureText(error) : t(accountTexts.keyNotCreated);
}
