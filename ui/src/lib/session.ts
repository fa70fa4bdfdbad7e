import { UserManager, WebStorageStateStore } from 'oidc-client-ts';
import { useAuth } from 'react-oidc-context';
import { setCredentials } from './api-client';
import type { Identity } from './api-types';
import { useConfig } from './env';
import { paths } from './paths';

export type Provider = 'google' | 'facebook' | 'password';

export function createUserManager(identity: Identity): UserManager {
  const { origin } = window.location;
  return new UserManager({
    authority: identity.issuer,
    client_id: identity.clientId,
    scope: identity.scope,
    redirect_uri: origin + paths.authCallback,
    post_logout_redirect_uri: origin + paths.login,
    response_type: 'code',
    automaticSilentRenew: true,
    // A token made for the API is refused by the provider's userinfo endpoint; the email is in the ID token.
    loadUserInfo: false,
    userStore: new WebStorageStateStore({ store: window.sessionStorage }),
  });
}

/** Lets the API client sign its calls, and ends the session when it can no longer be renewed. */
export function attachSession(manager: UserManager, goToLogin: () => void) {
  async function end() {
    if (!(await manager.getUser())) return;
    await manager.removeUser();
    goToLogin();
  }
  manager.events.addSilentRenewError(end);
  setCredentials({
    token: async () => {
      const user = await manager.getUser();
      return user && !user.expired ? user.access_token : null;
    },
    onRefused: end,
  });
}

export function useSession() {
  const auth = useAuth();
  const { identity } = useConfig();

  return {
    isLoading: auth.isLoading,
    isSignedIn: auth.isAuthenticated,
    error: auth.error,
    email: auth.user?.profile.email ?? null,

    signIn(provider: Provider | null, callback: string = paths.authCallback) {
      const hint = provider ? identity.providers[provider] : null;
      return auth.signinRedirect({
        redirect_uri: window.location.origin + callback,
        extraQueryParams:
          hint && identity.idpHintParameter ? { [identity.idpHintParameter]: hint } : undefined,
      });
    },

    /** Signs out of this browser alone, without a visit to the identity provider. */
    forget: () => auth.removeUser(),

    async signOut() {
      const back = window.location.origin + paths.login;
      if (identity.logoutStyle === 'cognito' && identity.logoutEndpoint) {
        await auth.removeUser();
        const address = new URL(identity.logoutEndpoint);
        address.searchParams.set('client_id', identity.clientId);
        address.searchParams.set('logout_uri', back);
        window.location.assign(address);
        return;
      }
      try {
        await auth.signoutRedirect({ post_logout_redirect_uri: back });
      } catch {
        // The provider cannot be reached; this browser forgets the session all the same.
        await auth.removeUser();
      }
    },
  };
}
