import type { ReactNode } from 'react';
import { createBrowserRouter } from 'react-router';
import { loadConfig } from '@/lib/env';
import { startLanguage } from '@/lib/language';
import { createQueryClient } from '@/lib/query-client';
import { Session } from '@/lib/session';
import { ensureHistoryKey } from './history-key';
import { Provider } from './provider';
import { routes } from './router';
import { signInAgain } from './sign-in-again';
import { StartPage } from './start-page';

/** After everything has loaded. */
const CLEANUP_DELAY_MS = 10_000;

/** Creates the settings, the session, the query cache and the router. */
export async function start(): Promise<ReactNode> {
  ensureHistoryKey();
  const language = startLanguage();
  try {
    // Created first, so that it loads the first route's code while the settings load.
    const router = createBrowserRouter(routes);
    const [config] = await Promise.all([loadConfig(), language]);
    const queryClient = createQueryClient();
    const session = new Session(config.identity, {
      onExpired: () => signInAgain(router),
      // Another account must never see cached data of this one.
      onSignedOut: () => queryClient.clear(),
      onUserChanged: () => window.location.reload(),
    });
    setTimeout(() => void forgetExpiredPictures().catch(() => {}), CLEANUP_DELAY_MS);
    return <Provider config={config} session={session} queryClient={queryClient} router={router} />;
  } catch {
    await language;
    return <StartPage hasFailed />;
  }
}

/** Deletes what visitors left in this browser. */
async function forgetExpiredPictures() {
  const { forgetExpired } = await import('@/lib/kept-picture');
  await forgetExpired();
}
