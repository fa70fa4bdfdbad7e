import { readFileSync } from 'node:fs';
import type { Plugin } from 'vite';

/** Serves msw's service worker from its package to `npm run dev:mock`. Builds do not contain it. */
export function serveMockWorker(): Plugin {
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
