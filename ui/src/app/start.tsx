import type { ReactNode } from 'react';
import { createBrowserRouter } from 'react-router';
import { loadConfig } from '@/lib/env';
import { paths } from '@/lib/paths';
import { createQueryClient } from '@/lib/query-client';
import { attachSession, createUserManager } from '@/lib/session';
import { Provider } from './provider';
import { routes } from './router';
import { StartPage } from './start-page';

/** Everything that exists once: the settings, the session, the cache and the router. */
export async function start(): Promise<ReactNode> {
  try {
    // Before the settings are there: the router fetches the first route's code meanwhile.
    const router = createBrowserRouter(routes);
    const config = await loadConfig();
    const userManager = createUserManager(config.identity);
    attachSession(userManager, () => void router.navigate(paths.login));
    return (
      <Provider config={config} userManager={userManager} queryClient={createQueryClient()} router={router} />
    );
  } catch {
    return <StartPage hasFailed />;
  }
}
