import { type QueryClient, QueryClientProvider } from '@tanstack/react-query';
import { useEffect } from 'react';
import { type DataRouter, RouterProvider } from 'react-router';
import type { Config } from '@/lib/api-types';
import { ConfigContext } from '@/lib/env';
import { type Session, SessionContext } from '@/lib/session';
import { loadPagesAhead } from './load-ahead';
import { Toasts } from './shell/toasts';

type ProviderProps = {
  config: Config;
  session: Session;
  queryClient: QueryClient;
  router: DataRouter;
};

export function Provider({ config, session, queryClient, router }: ProviderProps) {
  useEffect(
    () => loadPagesAhead({ router, queryClient, session, config }),
    [router, queryClient, session, config],
  );
  return (
    <ConfigContext value={config}>
      <SessionContext value={session}>
        <QueryClientProvider client={queryClient}>
          <RouterProvider router={router} />
          <Toasts />
        </QueryClientProvider>
      </SessionContext>
    </ConfigContext>
  );
}
