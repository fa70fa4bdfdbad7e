import { Icon, type IconName } from '@/components/icon';
import { type Theme, useTheme } from '@/lib/theme';
import { type Message, msg, t } from '@/lib/translate';

const next: Record<Theme, Theme> = { system: 'light', light: 'dark', dark: 'system' };
const names: Record<Theme, Message> = {
  system: msg('System theme'),
  light: msg('Light theme'),
  dark: msg('Dark theme'),
};
/** What the button says: the theme, and the one that a click switches to. */
const labels: Record<Theme, Message> = {
  system: msg('System theme, switch to light theme'),
  light: msg('Light theme, switch to dark theme'),
  dark: msg('Dark theme, switch to system theme'),
};
const icons: Record<Theme, IconName> = { system: 'system', light: 'sun', dark: 'moon' };

export function ThemeToggle() {
  const { theme, setTheme } = useTheme();
  return (
    <button
      type="button"
      aria-label={t(labels[theme])}
      className="inline-flex min-h-11 items-center gap-2 rounded-md px-3 hover:text-ink hover:underline underline-offset-4"
      onClick={() => setTheme(next[theme])}
    >
      <Icon name={icons[theme]} className="size-4" />
      {t(names[theme])}
    </button>
  );
}
