import { test as base, expect } from '@playwright/test';

/** Fails on errors and warnings in the browser's console, such as failed loads and CSP violations. */
export const test = base.extend<{ expectedRefusals: number[]; complaints: undefined }>({
  // Chromium logs every error response; a test lists the statuses that it provokes.
  expectedRefusals: [[], { option: true }],
  complaints: [
    async ({ context, expectedRefusals }, use) => {
      const complaints: string[] = [];
      context.on('weberror', (failure) => complaints.push(String(failure.error())));
      context.on('console', (message) => {
        if (message.type() !== 'error' && message.type() !== 'warning') return;
        if (expectedRefusals.some((status) => message.text().includes(`status of ${status} `))) return;
        // React reports what an error boundary has caught.
        if (expectedRefusals.includes(404) && message.text().includes('dynamically imported module')) return;
        // Tests that go offline cause this.
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
