import { Icon, type IconName } from '@/components/icon';
import { type Theme, useTheme } from '@/lib/theme';

const next: Record<Theme, Theme> = { system: 'light', light: 'dark', dark: 'system' };
const names: Record<Theme, string> = { system: 'System theme', light: 'Light theme', dark: 'Dark theme' };
const icons: Record<Theme, IconName> = { system: 'system', light: 'sun', dark: 'moon' };

export function ThemeToggle({ withLabel = false }: { withLabel?: boolean }) {
  const { theme, setTheme } = useTheme();
  return (
    <button
      type="button"
      title={names[theme]}
      aria-label={`${names[theme]}, switch to ${names[next[theme]].toLowerCase()}`}
      className="inline-flex min-h-11 min-w-11 items-center justify-center gap-3 rounded-md px-3 text-sm font-medium text-soft hover:bg-sunken hover:text-ink"
      onClick={() => setTheme(next[theme])}
    >
      <Icon name={icons[theme]} />
      {withLabel && names[theme]}
    </button>
  );
}
