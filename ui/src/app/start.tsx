import type { ReactNode } from 'react';
import { createBrowserRouter } from 'react-router';
import { loadConfig } from '@/lib/env';
import { paths } from '@/lib/paths';
import { createQueryClient } from '@/lib/query-client';
import { Session } from '@/lib/session';
import { nameEntry } from './name-entry';
import { Provider } from './provider';
import { routes } from './router';
import { StartPage } from './start-page';

/** Everything that exists once: the settings, the session, the cache and the router. */
export async function start(): Promise<ReactNode> {
  nameEntry();
  try {
    // Before the settings are there: the router fetches the first route's code meanwhile.
    const router = createBrowserRouter(routes);
    const config = await loadConfig();
    const queryClient = createQueryClient();
    const session = new Session(config.identity, {
      onEnd: () => void router.navigate(paths.login),
      // Another account must never see what the last one had cached.
      onForget: () => queryClient.clear(),
    });
    return <Provider config={config} session={session} queryClient={queryClient} router={router} />;
  } catch {
    return <StartPage hasFailed />;
  }
}
