const format = new Intl.DateTimeFormat('en-US', { dateStyle: 'medium', timeStyle: 'short' });

export function formatDate(date: Date): string {
  return format.format(date);
}

/** Breaks only between the date and the time. */
export function DateTime({ at }: { at: Date }) {
  const text = formatDate(at);
  const split = text.lastIndexOf(', ') + 2;
  return (
    <time dateTime={at.toISOString()}>
      {text.slice(0, split)}
      <span className="whitespace-nowrap">{text.slice(split)}</span>
    </time>
  );
}
