import '@testing-library/jest-dom/vitest';
import { cleanup, configure } from '@testing-library/react';
import { afterAll, afterEach, beforeAll, beforeEach, vi } from 'vitest';
import { clearUserData } from '@/lib/sign-out-cleanup';
import { quickenStyles } from './quick-styles';
import { server } from './server';

// The first visit to a route compiles it, which can exceed the default of one second on a busy machine.
configure({ asyncUtilTimeout: 6_000 });

quickenStyles();

beforeAll(() => server.listen({ onUnhandledRequest: 'error' }));
afterAll(() => server.close());

beforeEach(() => {
  // APIs that the page uses and jsdom lacks.
  URL.createObjectURL = vi.fn(() => `blob:test-${Math.random()}`);
  URL.revokeObjectURL = vi.fn();
  window.scrollTo = vi.fn();
  window.ResizeObserver ??= class {
    observe() {}
    unobserve() {}
    disconnect() {}
  };
  Blob.prototype.text ??= function text(this: Blob) {
    return new Promise((resolve, reject) => {
      const reader = new FileReader();
      reader.onload = () => resolve(String(reader.result));
      reader.onerror = () => reject(reader.error);
      reader.readAsText(this);
    });
  };
});

afterEach(() => {
  cleanup();
  // What continues while another page is open would continue in the next test.
  clearUserData();
  server.resetHandlers();
  sessionStorage.clear();
  localStorage.clear();
});
