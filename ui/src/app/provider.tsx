import { type QueryClient, QueryClientProvider } from '@tanstack/react-query';
import type { UserManager } from 'oidc-client-ts';
import { AuthProvider } from 'react-oidc-context';
import { type DataRouter, RouterProvider } from 'react-router';
import type { Config } from '@/lib/api-types';
import { ConfigContext } from '@/lib/env';
import { paths } from '@/lib/paths';
import { Toasts } from './shell/toasts';

type ProviderProps = {
  config: Config;
  userManager: UserManager;
  queryClient: QueryClient;
  router: DataRouter;
};

export function Provider({ config, userManager, queryClient, router }: ProviderProps) {
  return (
    <ConfigContext value={config}>
      <AuthProvider
        userManager={userManager}
        // Only the two return addresses finish a sign-in; elsewhere `code` and `state` mean nothing.
        skipSigninCallback={!isCallback(window.location.pathname)}
        // The one-time code must not stay in the address or the history.
        onSigninCallback={() => window.history.replaceState(null, '', window.location.pathname)}
        // Another account must never see what the last one had cached.
        onRemoveUser={() => queryClient.clear()}
      >
        <QueryClientProvider client={queryClient}>
          <RouterProvider router={router} />
          <Toasts />
        </QueryClientProvider>
      </AuthProvider>
    </ConfigContext>
  );
}

function isCallback(path: string): boolean {
  return path === paths.authCallback || path === paths.authCallbackMagic;
}
