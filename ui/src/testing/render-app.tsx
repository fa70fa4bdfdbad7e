// Loaded before the tests: on a busy machine, their first import takes longer than a test waits for what they show.
import '@/components/confirm-dialog';
import 'react-toastify';
import { type RenderResult, render } from '@testing-library/react';
import { createMemoryRouter } from 'react-router';
import { onTestFinished } from 'vitest';
import { Provider } from '@/app/provider';
import { routes } from '@/app/router';
import { signInAgain } from '@/app/sign-in-again';
import { createQueryClient } from '@/lib/query-client';
import { Session } from '@/lib/session';
import { MockApi } from './mock-api';
import { server } from './server';
import { storeSession } from './session';

type RenderAppOptions = { api?: MockApi; signedIn?: boolean };

/** Renders the real app at a path. Only the network is mocked. */
export function renderApp(path: string, { api = new MockApi(), signedIn = false }: RenderAppOptions = {}) {
  server.use(...api.handlers());
  if (signedIn) storeSession(api.config.identity);
  const router = createMemoryRouter(routes, { initialEntries: [path] });
  const queryClient = createQueryClient();
  const session = new Session(api.config.identity, {
    onExpired: () => signInAgain(router),
    onSignedOut: () => queryClient.clear(),
    onUserChanged: () => {},
  });
  onTestFinished(() => session.dispose());
  const screen: RenderResult = render(
    <Provider config={api.config} session={session} queryClient={queryClient} router={router} />,
  );
  return { ...screen, api, router, queryClient };
}
