const format = new Intl.DateTimeFormat('en-US', { dateStyle: 'medium', timeStyle: 'short' });

export function formatDate(date: Date): string {
  return format.format(date);
}

export function DateTime({ at }: { at: Date }) {
  return <time dateTime={at.toISOString()}>{formatDate(at)}</time>;
}
