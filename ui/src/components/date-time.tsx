import { formatDate } from '@/lib/format';

export function DateTime({ at }: { at: Date }) {
  return <time dateTime={at.toISOString()}>{formatDate(at)}</time>;
}
