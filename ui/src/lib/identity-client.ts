import { UserManager, WebStorageStateStore } from 'oidc-client-ts';
import type { Identity } from './api-types';
import { paths } from './paths';

/** Speaks to the identity provider. Only `session.ts` knows this file, and fetches it when it has to. */
export function createIdentityClient(identity: Identity): UserManager {
  const { origin } = window.location;
  return new UserManager({
    authority: identity.issuer,
    client_id: identity.clientId,
    scope: identity.scope,
    redirect_uri: origin + paths.authCallback,
    post_logout_redirect_uri: origin + paths.login,
    response_type: 'code',
    // The session renews itself, so that the client is not needed before.
    automaticSilentRenew: false,
    // A token made for the API is refused by the provider's userinfo endpoint; the email is in the ID token.
    loadUserInfo: false,
    userStore: new WebStorageStateStore({ store: window.sessionStorage }),
  });
}
