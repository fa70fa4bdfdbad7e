import { expect, test, vi } from 'vitest';
import { createIdentityClient } from './identity-client';
import { leavePage } from './leave-page';

vi.mock('./leave-page', () => ({ leavePage: vi.fn() }));

test('a redirect ends if the browser stays on the page', async () => {
  vi.mocked(leavePage).mockResolvedValue();
  const issuer = 'https://id.test';
  const metadata = {
    issuer,
    authorization_endpoint: `${issuer}/auth`,
    end_session_endpoint: `${issuer}/end`,
  };
  vi.spyOn(window, 'fetch').mockImplementation(async () => Response.json(metadata));
  const client = createIdentityClient({
    issuer,
    clientId: 'page',
    scope: 'openid',
    providers: {},
    logoutStyle: 'end_session',
  });

  await client.signinRedirect();
  expect(vi.mocked(leavePage)).toHaveBeenLastCalledWith(
    expect.stringContaining(`${issuer}/auth?client_id=page`),
  );
  await client.signoutRedirect();
  expect(vi.mocked(leavePage)).toHaveBeenLastCalledWith(expect.stringContaining(`${issuer}/end?`));
});
