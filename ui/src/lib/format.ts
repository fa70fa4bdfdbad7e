import type { Count } from './api-types';

export function formatBytes(bytes: number): string {
  if (bytes < 1_000) return `${bytes} B`;
  if (bytes < 1_000_000) return `${Math.round(bytes / 1_000)} kB`;
  const mb = bytes / (1024 * 1024);
  return mb < 1024 ? `${Number(mb.toFixed(1))} MB` : `${Number((mb / 1024).toFixed(1))} GB`;
}

export function formatMoney(amount: number, currency: string): string {
  const whole = amount % 100 === 0;
  return new Intl.NumberFormat('en-US', {
    style: 'currency',
    currency,
    minimumFractionDigits: whole ? 0 : 2,
  }).format(amount / 100);
}

export function formatSeconds(seconds: number): string {
  if (seconds < 90) return `${Math.max(1, Math.round(seconds))} s`;
  return `${Math.round(seconds / 60)} min`;
}

export function formatTimeLeft(seconds: number): string {
  return `about ${formatSeconds(seconds)} left`;
}

/** The current tile or step; null if there are fewer than two. */
export function formatCount(count: Count | null | undefined): string | null {
  if (!count || count.total < 2) return null;
  // While none is done, the first one is in progress.
  return `${units[count.unit]} ${Math.max(1, count.done)} of ${count.total}`;
}

const units: Record<Count['unit'], string> = { tiles: 'Tile', steps: 'Step' };

export function formatPercent(fraction: number): string {
  return `${Math.round(fraction * 100)}%`;
}

export function formatDuration(ms: number): string {
  return ms < 10_000 ? `${(ms / 1000).toFixed(1)} s` : `${Math.round(ms / 1000)} s`;
}

export function credits(count: number): string {
  return count === 1 ? '1 credit' : `${count} credits`;
}
