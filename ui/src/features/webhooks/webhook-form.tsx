import { type FormEvent, useEffect, useId, useRef, useState } from 'react';
import { Button } from '@/components/button';
import { FieldProblem } from '@/components/field-problem';
import { TextField } from '@/components/text-field';
import { ApiError } from '@/lib/api-client';
import type { EventType, Webhook, WebhookRequest } from '@/lib/api-types';
import { failureText } from '@/lib/failure-text';
import { t } from '@/lib/translate';
import { eventTexts, webhookTexts } from './texts';

const EVENTS: EventType[] = ['job.done', 'job.failed', 'job.canceled', 'credits.low'];
const EXAMPLE = 'https://example.com/hooks';
const DEFAULT_CREDITS_BELOW = 20;
const MAX_CREDITS_BELOW = 1_000_000;

type WebhookFormProps = {
  /** Undefined for a new one. */
  webhook?: Webhook;
  save: (wish: WebhookRequest) => Promise<unknown>;
  onCancel: () => void;
};

type Field = 'address' | 'events' | 'threshold';

/** The URL and the events of a webhook. */
export function WebhookForm({ webhook, save, onCancel }: WebhookFormProps) {
  const problemId = useId();
  const fields = useRef<Partial<Record<Field, HTMLInputElement | null>>>({});
  const [url, setUrl] = useState(webhook?.url ?? '');
  const [description, setDescription] = useState(webhook?.description ?? '');
  const [events, setEvents] = useState<EventType[]>(webhook?.events ?? EVENTS);
  const savedBelow = webhook?.creditsBelow ?? DEFAULT_CREDITS_BELOW;
  const [below, setBelow] = useState(String(savedBelow));
  /** Without a field, it is about all of them. */
  const [problem, setProblem] = useState<{ field: Field | null; text: string } | null>(null);
  const [isBusy, setBusy] = useState(false);
  const hasThreshold = events.includes('credits.low');

  // The form opens on a click and replaces the button that had the focus.
  useEffect(() => fields.current.address?.focus(), []);

  async function submit(event: FormEvent) {
    event.preventDefault();
    if (isBusy) return;
    if (!url.trim()) return reject('address', t('Enter the address to call'));
    if (events.length === 0) return reject('events', t('Choose at least one event.'));
    // The value of a hidden field does not count.
    const creditsBelow = hasThreshold ? Number(below) : savedBelow;
    if (!(Number.isInteger(creditsBelow) && creditsBelow >= 1 && creditsBelow <= MAX_CREDITS_BELOW)) {
      return reject('threshold', t('Enter a whole number of credits'));
    }
    setProblem(null);
    setBusy(true);
    try {
      await save({ url: url.trim(), description: description.trim(), events, creditsBelow });
    } catch (error) {
      const isOurs = error instanceof ApiError && error.status >= 500;
      reject(isOurs ? null : 'address', isOurs ? t(webhookTexts.notSaved) : failureText(error as Error));
    } finally {
      setBusy(false);
    }
  }

  function reject(field: Field | null, text: string) {
    setProblem({ field, text });
    if (field) fields.current[field]?.focus();
  }

  /** Forgets the problem of a field whose value changes. */
  function accept(...changed: Field[]) {
    if (problem?.field && changed.includes(problem.field)) setProblem(null);
  }

  function toggle(event: EventType) {
    setEvents(EVENTS.filter((known) => events.includes(known) !== (known === event)));
    accept('events', 'threshold');
  }

  const problemIdOf = (field: Field) => (problem?.field === field ? problemId : null);
  const problemOf = (field: Field | null) =>
    problem?.field === field && (
      <FieldProblem id={problemId} className="-mt-2">
        {problem.text}
      </FieldProblem>
    );

  return (
    <form
      onSubmit={submit}
      noValidate
      aria-label={webhook ? t('Edit the webhook') : t('New webhook')}
      className="grid gap-4 rounded-lg border border-line bg-surface p-4"
    >
      <TextField
        ref={(input) => {
          fields.current.address = input;
        }}
        label={t('Address')}
        type="url"
        inputMode="url"
        maxLength={2000}
        value={url}
        placeholder={EXAMPLE}
        aria-required
        problemId={problemIdOf('address')}
        onValue={(next) => {
          setUrl(next);
          accept('address');
        }}
      />
      {problemOf('address')}
      <TextField
        label={t('Description (optional)')}
        maxLength={200}
        value={description}
        onValue={setDescription}
      />
      <fieldset aria-describedby={problemIdOf('events') ?? undefined} className="grid gap-1">
        <legend className="mb-1 font-semibold">{t('Call it when')}</legend>
        {EVENTS.map((event, index) => (
          <label key={event} className="flex min-h-9 thumb:min-h-11 w-fit items-center gap-3 text-sm">
            <input
              ref={(input) => {
                if (index === 0) fields.current.events = input;
              }}
              type="checkbox"
              checked={events.includes(event)}
              onChange={() => toggle(event)}
              className="size-5 accent-accent"
            />
            {t(eventTexts[event])}
          </label>
        ))}
      </fieldset>
      {problemOf('events')}
      {hasThreshold && (
        <TextField
          ref={(input) => {
            fields.current.threshold = input;
          }}
          label={t('Low-credit threshold')}
          type="number"
          min={1}
          max={MAX_CREDITS_BELOW}
          value={below}
          isNarrow
          problemId={problemIdOf('threshold')}
          onValue={(next) => {
            setBelow(next);
            accept('threshold');
          }}
        />
      )}
      {problemOf('threshold')}
      {problemOf(null)}
      <div className="flex flex-wrap gap-3">
        <Button type="submit" isBusy={isBusy}>
          {webhook ? t('Save') : t('Create webhook')}
        </Button>
        <Button variant="secondary" onClick={onCancel}>
          {t('Cancel')}
        </Button>
      </div>
    </form>
  );
}
