import { type RenderResult, render } from '@testing-library/react';
import { createMemoryRouter } from 'react-router';
import { Provider } from '@/app/provider';
import { routes } from '@/app/router';
import { createQueryClient } from '@/lib/query-client';
import { attachSession, createUserManager } from '@/lib/session';
import { MockApi } from './mock-api';
import { server } from './server';
import { storeSession } from './session';

type RenderAppOptions = { api?: MockApi; signedIn?: boolean };

/** The real app at an address: real router, real session, real cache; only the network is a stand-in. */
export function renderApp(path: string, { api = new MockApi(), signedIn = false }: RenderAppOptions = {}) {
  server.use(...api.handlers());
  if (signedIn) storeSession(api.config.identity);
  const userManager = createUserManager(api.config.identity);
  const router = createMemoryRouter(routes, { initialEntries: [path] });
  attachSession(userManager, () => void router.navigate('/login'));
  const queryClient = createQueryClient();
  const screen: RenderResult = render(
    <Provider config={api.config} userManager={userManager} queryClient={queryClient} router={router} />,
  );
  return { ...screen, api, router, queryClient };
}
