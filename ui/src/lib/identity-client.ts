import { type INavigator, UserManager, type UserManagerSettings, WebStorageStateStore } from 'oidc-client-ts';
import type { Identity } from './api-types';
import { leavePage } from './leave-page';
import { paths } from './paths';

/** Ends its wait if the browser stays on this page. The library's own would wait forever. */
const navigator: INavigator = {
  prepare: async () => ({
    navigate: async ({ url }) => {
      await leavePage(url);
      return { url };
    },
    close: () => {},
  }),
  callback: async () => {},
};

/** Creates the client of the identity provider. Only `session.ts` imports this file, and loads it on demand. */
export function createIdentityClient(identity: Identity): UserManager {
  const { origin } = window.location;
  const settings: UserManagerSettings = {
    authority: identity.issuer,
    client_id: identity.clientId,
    scope: identity.scope,
    redirect_uri: origin + paths.authCallback,
    post_logout_redirect_uri: origin + paths.login,
    response_type: 'code',
    // `Session` schedules renewals, so that the client loads only for them.
    automaticSilentRenew: false,
    // The userinfo endpoint refuses tokens issued for the API. The email is in the ID token.
    loadUserInfo: false,
    // Shared by all tabs; see docs/decisions/0021-one-sign-in-for-all-tabs.md.
    userStore: new WebStorageStateStore({ store: window.localStorage }),
    // A call that never ends would keep the other tabs waiting for their turn to renew.
    requestTimeoutInSeconds: 10,
  };
  return new UserManager(settings, navigator);
}
