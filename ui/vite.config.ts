import { fileURLToPath } from 'node:url';
import tailwindcss from '@tailwindcss/vite';
import react from '@vitejs/plugin-react';
import { defineConfig } from 'vitest/config';
import { catalogues } from './plugins/catalogues.ts';
import { precompress } from './plugins/precompress.ts';
import { preloadRoute } from './plugins/preload-route.ts';
import { serveMockWorker } from './plugins/serve-mock-worker.ts';

const api = process.env.RETOUCH_API ?? 'http://127.0.0.1:8080';

export default defineConfig(({ mode, command }) => ({
  plugins: [
    react(),
    tailwindcss(),
    catalogues(),
    preloadRoute(),
    precompress(),
    mode === 'mock' && serveMockWorker(),
  ],
  resolve: {
    alias: [
      { find: '@', replacement: fileURLToPath(new URL('./src', import.meta.url)) },
      // Leaves out konva's animations (2 kB), which the editor does not use.
      {
        find: './Tween.js',
        replacement: fileURLToPath(new URL('./src/features/mask/no-tween.ts', import.meta.url)),
      },
      // Its exports lead to the development build, which is 0.6 kB larger.
      ...(command === 'build'
        ? [
            {
              find: /^react-router$/,
              replacement: fileURLToPath(
                new URL('./node_modules/react-router/dist/production/index.mjs', import.meta.url),
              ),
            },
          ]
        : []),
    ],
  },
  server: {
    host: '127.0.0.1',
    port: 5173,
    proxy: mode === 'mock' ? undefined : { '/api': api },
  },
  build: {
    // 0.3 kB that only Safari 16 would use: without it, that loads the same scripts a little later.
    modulePreload: { polyfill: false },
    rolldownOptions: {
      output: {
        // Otherwise, both parts of a catalogue have the same name.
        chunkFileNames: ({ facadeModuleId }) =>
          `assets/[name]${facadeModuleId?.endsWith('?later') ? '-later' : ''}-[hash].js`,
        // Without groups, every small module that two routes share would be a request of its own.
        codeSplitting: {
          includeDependenciesRecursively: false,
          groups: [
            {
              name: 'vendor',
              priority: 2,
              test: /node_modules\/(react|react-dom|scheduler|react-router|@tanstack|zustand(?!.*middleware))\//,
            },
            // What takes in files. The pages of single images need none of it, and have no bytes to spare.
            {
              name: 'upload',
              priority: 2,
              test: /src\/(features\/images\/(upload-queue|send-upload)|components\/(chosen-preview|file-drop|use-incoming-files)|lib\/(send-image|use-chosen-image|with-retries|(use-)?kept-picture|picture-kind|image-size|upload-size))/,
            },
            // Five features compare pictures, but no page does at once. The editors need them too.
            { name: 'comparison', priority: 2, test: /src\/components\/(comparison|pan-zoom\/pointer)/ },
            // What the editors and the enlarged pictures share.
            {
              name: 'pan-zoom',
              priority: 2,
              test: /src\/components\/(pan-zoom\/(?!pointer)|hold-button|picture-wait)/,
            },
            // Together, so that pointing at Download or Copy loads all they need.
            {
              name: 'download',
              priority: 2,
              test: /src\/(lib\/download|features\/results\/(result-file|fetch-picture))/,
            },
            // The lists and texts of active jobs. Most pages load them only if there are any.
            {
              name: 'job-list',
              priority: 2,
              test: /src\/features\/runs\/(job-row|active-jobs-list|job-text|waits)/,
            },
            // What the pages with a list of images share.
            {
              name: 'image-list',
              priority: 2,
              test: /src\/features\/(images\/(get-images|image-filter)|runs\/progress-badge)\./,
            },
            // What the pages of a tool with one image share.
            {
              name: 'tool-page',
              priority: 2,
              test: /src\/(app\/routes\/tool-page|features\/(catalog\/cost-note|runs\/(run-request|run-problem-notice|attempts|check-preconditions|use-run)|results\/(made-from-link|finished-picture|next-\w+|image-from-result|use-as-image|result-(strip|toolbar|gallery|facts|preview)|last-look|use-new-marks|results-\w+|use-selected-result|new-badge|download-control|panel-button|source-note))\.)/,
            },
            // What several parts of the account page show.
            {
              name: 'account-parts',
              priority: 2,
              test: /src\/components\/(page-section|shown-once|text-field)/,
            },
            // Without what many modules share, but few pages load at first.
            {
              name: 'shared',
              priority: 1,
              test: /preload-helper|src\/(?!features\/(auth|checkouts)\/|components\/(date-time|icon-button))/,
              minShareCount: 5,
            },
            // What every page shows.
            {
              name: 'shell',
              test: /src\/(app\/shell\/|lib\/(consent|online|pasted-picture)\.|features\/credits\/(get-user|promotion)\.|components\/tooltip\.)/,
              minShareCount: 2,
            },
            // Without what only the tools' pages need to start a run, and what only the pages with thumbnails need.
            {
              name: 'runs',
              test: /src\/features\/runs\/(?!use-run\.|attempts|progress-badge|check-preconditions|run-problem-notice|run-request|run-toast)/,
              minShareCount: 2,
            },
          ],
        },
      },
    },
  },
  test: {
    environment: 'jsdom',
    setupFiles: ['src/testing/setup.ts'],
    include: ['{src,plugins}/**/*.test.{ts,tsx}'],
    testTimeout: 15_000,
    // By default one processor stays idle, which on two costs half.
    maxWorkers: '100%',
    restoreMocks: true,
  },
}));
