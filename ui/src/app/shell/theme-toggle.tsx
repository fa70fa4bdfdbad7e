import { Icon, type IconName } from '@/components/icon';
import { type Theme, useTheme } from '@/lib/theme';

const next: Record<Theme, Theme> = { system: 'light', light: 'dark', dark: 'system' };
const names: Record<Theme, string> = { system: 'System theme', light: 'Light theme', dark: 'Dark theme' };
const icons: Record<Theme, IconName> = { system: 'system', light: 'sun', dark: 'moon' };

export function ThemeToggle() {
  const { theme, setTheme } = useTheme();
  return (
    <button
      type="button"
      aria-label={`${names[theme]}, switch to ${names[next[theme]].toLowerCase()}`}
      className="inline-flex min-h-11 items-center gap-2 rounded-md px-3 hover:text-ink hover:underline underline-offset-4"
      onClick={() => setTheme(next[theme])}
    >
      <Icon name={icons[theme]} className="size-4" />
      {names[theme]}
    </button>
  );
}
