import { currentLocale } from '@/lib/translate';
export function formatDate(date: Date): string {
  return date.toLocaleString(currentLocale(), { dateStyle: 'medium', timeStyle: 'short' });
}

/** Breaks only between the date and the time. */
export function DateTime({ at }: { at: Date }) {
  const text = formatDate(at);
  // Languages without this comma have no break.
  const split = text.lastIndexOf(', ') + 2;
  return (
    <time dateTime={at.toISOString()}>
      {text.slice(0, split)}
      <span className="whitespace-nowrap">{text.slice(split)}</span>
    </time>
  );
}
