import { existsSync } from 'node:fs';

/** The browser that tests start: what CHROMIUM names, or Debian's browser without windows, or its whole browser. */
export const chromium =
  process.env.CHROMIUM ??
  ['/usr/bin/chromium-headless-shell', '/usr/bin/chromium'].find((path) => existsSync(path));
