import type { Count } from './api-types';
import { currentLocale, plural, t } from './translate';

/** Megabytes have 1024 × 1024 bytes, as in the limits of uploads and accounts. */
export function formatBytes(bytes: number): string {
  // A file of a few bytes is not one of 0 kB.
  if (bytes < 1_000_000) return formatUnit(Math.max(Math.min(bytes, 1), bytes / 1_000), 'kilobyte', 0);
  const mb = bytes / (1024 * 1024);
  return mb < 1024 ? formatUnit(mb, 'megabyte', 1) : formatUnit(mb / 1024, 'gigabyte', 1);
}

function formatUnit(value: number, unit: string, maximumFractionDigits: number): string {
  const options = { style: 'unit', unit, maximumFractionDigits, useGrouping: false } as const;
  return value.toLocaleString(currentLocale(), options);
}

/** A text in the quotation marks of the language. */
export function quoted(text: string): string {
  return t('“{text}”', { text });
}

export function formatMoney(amount: number, currency: string): string {
  const whole = amount % 100 === 0;
  return new Intl.NumberFormat(currentLocale(), {
    style: 'currency',
    currency,
    minimumFractionDigits: whole ? 0 : 2,
  }).format(amount / 100);
}

export function formatSeconds(seconds: number): string {
  if (seconds < 90) return t('{seconds} s', { seconds: Math.max(1, Math.round(seconds)) });
  return t('{minutes} min', { minutes: Math.round(seconds / 60) });
}

export function formatTimeLeft(seconds: number): string {
  return t('about {time} left', { time: formatSeconds(seconds) });
}

/** The current tile or step; null if there are fewer than two. */
export function formatCount(count: Count | null | undefined): string | null {
  if (!count || count.total < 2) return null;
  // While none is done, the first one is in progress.
  const current = Math.max(1, count.done);
  return count.unit === 'tiles'
    ? t('Tile {current} of {total}', { current, total: count.total })
    : t('Step {current} of {total}', { current, total: count.total });
}

export function formatPercent(fraction: number): string {
  return fraction.toLocaleString(currentLocale(), { style: 'percent' });
}

export function formatDuration(ms: number): string {
  const seconds = ms / 1000;
  const digits = ms < 10_000 ? 1 : 0;
  return t('{seconds} s', {
    seconds: seconds.toLocaleString(currentLocale(), {
      minimumFractionDigits: digits,
      maximumFractionDigits: digits,
    }),
  });
}

export function credits(count: number): string {
  return plural(count, { one: '# credit', other: '# credits' });
}
