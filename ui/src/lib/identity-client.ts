import { type INavigator, UserManager, type UserManagerSettings, WebStorageStateStore } from 'oidc-client-ts';
import type { Identity } from './api-types';
import { leavePage } from './leave-page';
import { paths } from './paths';

export type Provider = 'google' | 'facebook' | 'password';

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

/** The client of the identity provider. Only `session.ts` imports this file, and loads it on demand. */
export class IdentityClient extends UserManager {
  constructor(private readonly identity: Identity) {
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
    super(settings, navigator);
  }

  /** Leaves for the sign-in of a provider, which comes back to `callback`. */
  async signIn(provider: Provider | null, callback: string, returnTo: string | null) {
    const { providers, idpHintParameter } = this.identity;
    const hint = provider ? providers[provider] : null;
    await this.signinRedirect({
      redirect_uri: callback,
      extraQueryParams: hint && idpHintParameter ? { [idpHintParameter]: hint } : undefined,
      // Stored in this browser under the one-time state of this sign-in.
      state: returnTo ?? undefined,
    });
  }

  /** Ends the session with the provider. The browser usually leaves this page before it returns. */
  async signOut() {
    // The refresh token would otherwise outlive the session. Not every provider can revoke it.
    await this.revokeTokens(['refresh_token']).catch(() => {});
    await this.signoutRedirect({
      // Beside an ID token, the library would leave it out.
      extraQueryParams: { client_id: this.identity.clientId },
    });
  }
}
