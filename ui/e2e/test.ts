import { test as base, expect } from '@playwright/test';

/** Fails on whatever the browser complains about: errors, refused loads, violations of the policy. */
export const test = base.extend<{ expectedRefusals: number[]; complaints: undefined }>({
  // Chromium reports every refused call; a test names the statuses that it provokes.
  expectedRefusals: [[], { option: true }],
  complaints: [
    async ({ context, expectedRefusals }, use) => {
      const complaints: string[] = [];
      context.on('weberror', (failure) => complaints.push(String(failure.error())));
      context.on('console', (message) => {
        if (message.type() !== 'error' && message.type() !== 'warning') return;
        if (expectedRefusals.some((status) => message.text().includes(`status of ${status} `))) return;
        // A network that a test takes away is no mistake of the page.
        if (message.text().includes('net::ERR_INTERNET_DISCONNECTED')) return;
        complaints.push(`${message.text()} (${message.location().url})`);
      });
      await use(undefined);
      expect(complaints).toEqual([]);
    },
    { auto: true },
  ],
});

export { expect };
