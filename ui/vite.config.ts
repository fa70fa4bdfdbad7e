import { fileURLToPath } from 'node:url';
import tailwindcss from '@tailwindcss/vite';
import react from '@vitejs/plugin-react';
import { defineConfig } from 'vitest/config';
import { askEarly } from './plugins/ask-early.ts';
import { compressHard } from './plugins/compress-hard.ts';
import { serveMockWorker } from './plugins/serve-mock-worker.ts';

const api = process.env.RETOUCH_API ?? 'http://127.0.0.1:8080';

export default defineConfig(({ mode }) => ({
  plugins: [react(), tailwindcss(), askEarly(), compressHard(), mode === 'mock' && serveMockWorker()],
  resolve: { alias: { '@': fileURLToPath(new URL('./src', import.meta.url)) } },
  server: {
    host: '127.0.0.1',
    port: 5173,
    proxy: mode === 'mock' ? undefined : { '/api': api },
  },
  build: {
    rolldownOptions: {
      output: {
        // Without groups every small component shared by two routes is a request of its own.
        codeSplitting: {
          includeDependenciesRecursively: false,
          groups: [
            {
              name: 'vendor',
              priority: 2,
              test: /node_modules\/(react|react-dom|scheduler|react-router|@tanstack|openapi-fetch|zustand(?!.*middleware))\//,
            },
            {
              name: 'shared',
              priority: 1,
              test: /vite\/preload-helper|src\/app\/shell\/(account-button|navigation-links)|src\/(lib|components)\/(?!comparison|confirm|file-drop|chosen-preview|picture-box|use-chosen|image-size|job-events|download|tabs|date-time|load-failure|leave-page|identity-client)/,
            },
            {
              name: 'orders',
              test: /src\/features\/checkouts/,
            },
            {
              name: 'loaded',
              test: /src\/components\/(date-time|load-failure)/,
            },
            {
              name: 'running',
              test: /src\/features\/tools\/under-way\/(get-running|ended|running-(indicator|button|address))/,
            },
            {
              name: 'picture',
              test: /src\/components\/(picture-box|confirm-button)|src\/features\/(images\/(texts|image-name|original-image)|tools\/results\/(factor-badge|get-results))|src\/app\/routes\/installed/,
            },
            {
              name: 'tool-at-work',
              test: /src\/app\/routes\/tool-(page|of-image)|src\/features\/tools\/(run|follow-run|cancel-job|cost-note|stored-image-tool|results-side|results\/(results-panel|result-gallery|result-strip|result-toolbar))/,
            },
          ],
        },
      },
    },
  },
  test: {
    environment: 'jsdom',
    setupFiles: ['src/testing/setup.ts'],
    include: ['src/**/*.test.{ts,tsx}'],
    testTimeout: 15_000,
    restoreMocks: true,
  },
}));
