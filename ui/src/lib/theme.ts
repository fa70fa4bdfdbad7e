import { create } from 'zustand';

export type Theme = 'system' | 'light' | 'dark';

const KEY = 'retouch-theme';

function stored(): Theme {
  try {
    const value = localStorage.getItem(KEY);
    return value === 'light' || value === 'dark' ? value : 'system';
  } catch {
    return 'system';
  }
}

// index.html reads the same key before the first paint.
export const useTheme = create<{ theme: Theme; setTheme: (theme: Theme) => void }>((set) => ({
  theme: stored(),
  setTheme: (theme) => {
    if (theme === 'system') delete document.documentElement.dataset.theme;
    else document.documentElement.dataset.theme = theme;
    try {
      if (theme === 'system') localStorage.removeItem(KEY);
      else localStorage.setItem(KEY, theme);
    } catch {
      // A browser that keeps nothing still shows the theme until the page is left.
    }
    set({ theme });
  },
}));
