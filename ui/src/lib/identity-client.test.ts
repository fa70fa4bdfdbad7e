import { expect, test, vi } from 'vitest';
import { IdentityClient } from './identity-client';
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
  const client = new IdentityClient({
    issuer,
    clientId: 'page',
    scope: 'openid',
    providers: {},
    logoutStyle: 'end_session',
  });

  await client.signIn(null, 'https://page.test/back', null);
  expect(vi.mocked(leavePage)).toHaveBeenLastCalledWith(
    expect.stringContaining(`${issuer}/auth?client_id=page`),
  );
  await client.signOut();
  expect(vi.mocked(leavePage)).toHaveBeenLastCalledWith(expect.stringContaining(`${issuer}/end?`));
});
