import type { QueryClient } from '@tanstack/react-query';
import { type DataRouter, matchRoutes } from 'react-router';
import type { Config, ToolName } from '@/lib/api-types';
import { isInstalled } from '@/lib/env';
import { prefetch } from '@/lib/load-with-retry';
import type { Session } from '@/lib/session';
import type { PageData } from './page-data';

/** What a route's `handle` says about loading it. */
export type Ahead = {
  loadCode: () => Promise<unknown>;
  data?: PageData;
  /** The tool of the page. If it is not installed, the page shows only a notice, so its data is not loaded. */
  tool?: ToolName;
};

// Apart, because many pages have no data.
const loadPageData = () => import('./page-data');

/** A pointer must rest on a link this long before the page behind it is loaded. */
const INTENT_MS = 60;

type App = { router: DataRouter; queryClient: QueryClient; session: Session; config: Config };

/**
 * Loads a page's data while its code is still on the way, and both as soon as the user points at a link to it or
 * focuses it. Returns a function that ends this.
 */
export function loadPagesAhead({ router, queryClient, session, config }: App): () => void {
  // The first page requests its own data: this code would arrive no earlier than the page's code.
  let shown = router.state.location.pathname + router.state.location.search;
  let timer = 0;

  function load(address: { pathname: string; search: string }, withCode: boolean) {
    for (const { route, params } of matchRoutes(router.routes, address) ?? []) {
      const ahead = route.handle as Ahead | undefined;
      if (ahead && withCode) prefetch(ahead.loadCode)();
      const isOffered = !ahead?.tool || isInstalled(config, ahead.tool);
      // Visitors have no data.
      const data = ahead?.data;
      if (data && isOffered && session.state.getState().user) {
        const search = new URLSearchParams(address.search);
        loadPageData()
          .then(({ pageData }) => pageData[data](queryClient, params, search, ahead.tool))
          // The page will load its data anyway.
          .catch(() => {});
      }
    }
  }

  function visit(location: { pathname: string; search: string }) {
    const address = location.pathname + location.search;
    if (address === shown) return;
    shown = address;
    load(location, false);
  }

  function expectClick({ target }: Event) {
    const link = target instanceof Element ? target.closest('a') : null;
    clearTimeout(timer);
    if (!link || link.origin !== window.location.origin || savesData()) return;
    timer = window.setTimeout(() => load(link, true), INTENT_MS);
  }

  const unsubscribe = router.subscribe(({ navigation }) => {
    if (navigation.state === 'loading') visit(navigation.location);
  });
  document.addEventListener('pointerover', expectClick);
  document.addEventListener('focusin', expectClick);
  return () => {
    clearTimeout(timer);
    unsubscribe();
    document.removeEventListener('pointerover', expectClick);
    document.removeEventListener('focusin', expectClick);
  };
}

/** Whether the user has asked the browser to use little data. */
function savesData(): boolean {
  return 'connection' in navigator && (navigator.connection as { saveData?: boolean }).saveData === true;
}
