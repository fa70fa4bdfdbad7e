import { currentLocale } from '@/lib/translate';
export function formatDate(date: Date): string {
  return date.toLocaleString(currentLocale(), { dateStyle: 'medium', timeStyle: 'short' });
}

/** Breaks between the date and the time, and never within the time. */
export function DateTime({ at }: { at: Date }) {
  const text = formatDate(at);
  const split = text.search(/\d+:/);
  return (
    <time dateTime={at.toISOString()}>
      {text.slice(0, split)}
      <span className="whitespace-nowrap">{text.slice(split)}</span>
    </time>
  );
}
