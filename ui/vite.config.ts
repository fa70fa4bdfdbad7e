import { readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { brotliCompressSync, gzipSync } from 'node:zlib';
import tailwindcss from '@tailwindcss/vite';
import react from '@vitejs/plugin-react';
import type { Plugin } from 'vite';
import { defineConfig } from 'vitest/config';

const api = process.env.RETOUCH_API ?? 'http://127.0.0.1:8080';

export default defineConfig(({ mode }) => ({
  plugins: [
    react(),
    tailwindcss(),
    askForSettingsEarly(),
    compressHard(),
    mode === 'mock' && serveMockWorker(),
  ],
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
              test: /src\/features\/tools\/under-way\/(get-running|running-(indicator|button))/,
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

/** Gives `npm run dev:mock` msw's service worker from its package; the product never ships it. */
function serveMockWorker(): Plugin {
  return {
    name: 'serve-mock-worker',
    configureServer({ middlewares }) {
      middlewares.use('/mockServiceWorker.js', (_, response) => {
        response.setHeader('Content-Type', 'text/javascript');
        response.end(readFileSync('node_modules/msw/lib/mockServiceWorker.js'));
      });
    },
  };
}

/** The settings are on their way before any script asks for them; not in development, where a mock may answer. */
function askForSettingsEarly(): Plugin {
  const attrs = { rel: 'preload', href: '/api/config', as: 'fetch', crossorigin: true };
  return {
    name: 'ask-for-settings-early',
    apply: 'build',
    transformIndexHtml: () => [{ tag: 'link', attrs, injectTo: 'head' }],
  };
}

/** Writes a Brotli and a gzip copy beside each text file of the build, for the API to serve as they are. */
function compressHard(): Plugin {
  let folder = 'dist';
  return {
    name: 'compress-hard',
    apply: 'build',
    configResolved(config) {
      folder = config.build.outDir;
    },
    // Not closeBundle, which also runs after a failure and would hide it.
    writeBundle() {
      for (const entry of readdirSync(folder, { recursive: true, encoding: 'utf8' })) {
        if (!/\.(js|css|html|svg|json)$/.test(entry)) {
          continue;
        }
        const bytes = readFileSync(join(folder, entry));
        writeFileSync(join(folder, `${entry}.br`), brotliCompressSync(bytes));
        writeFileSync(join(folder, `${entry}.gz`), gzipSync(bytes, { level: 9 }));
      }
    },
  };
}
