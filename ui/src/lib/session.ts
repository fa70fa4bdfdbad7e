import type { User, UserManager } from 'oidc-client-ts';
import { createContext, useContext } from 'react';
import { createStore, useStore } from 'zustand';
import { setCredentials } from './api-client';
import type { Identity } from './api-types';
import { pathWithin } from './path-within';
import { paths } from './paths';
import { clearUserData } from './sign-out-cleanup';

export type Provider = 'google' | 'facebook' | 'password';

/** The part of the identity client's stored user that the page needs without the client. */
type StoredUser = Pick<User, 'access_token' | 'expires_at' | 'profile'>;

type SessionState = {
  isLoading: boolean;
  user: StoredUser | null;
  error: unknown;
  /** The page that sent a visitor to sign in. */
  returnTo: string | null;
  /** Whether a user signed out in this tab; the next one must not return to that user's page. */
  hasSignedOut: boolean;
};

type SessionEvents = {
  /** The API refused the token, or the token could not be renewed. */
  onExpired: () => void;
  /** The user signed out: cached data has to go. */
  onSignedOut: () => void;
};

const CHECK_MS = 5_000;
const RENEW_BEFORE_SECONDS = 60;

/**
 * The user's session in this tab. The identity client is an eighth of the page's code, so it loads only to begin or
 * finish a sign-in, to renew a token, or to sign out.
 */
export class Session {
  readonly state = createStore<SessionState>(() => ({
    isLoading: false,
    user: null,
    error: null,
    returnTo: null,
    hasSignedOut: false,
  }));
  private readonly storageKey: string;
  private client: Promise<UserManager> | null = null;
  private isRenewing = false;

  constructor(
    private readonly identity: Identity,
    private readonly events: SessionEvents,
  ) {
    this.storageKey = `oidc.user:${identity.issuer}:${identity.clientId}`;
    if (isCallback(window.location)) void this.finishSignIn();
    else this.state.setState({ user: this.readStoredUser() });
    setCredentials({ token: async () => this.token(), onRefused: this.expire });
    setInterval(this.renew, CHECK_MS);
  }

  signIn = async (
    provider: Provider | null,
    { callback = paths.authCallback as string, returnTo = null as string | null } = {},
  ) => {
    const { providers, idpHintParameter } = this.identity;
    const hint = provider ? providers[provider] : null;
    const client = await this.loadClient();
    await client.signinRedirect({
      redirect_uri: window.location.origin + callback,
      extraQueryParams: hint && idpHintParameter ? { [idpHintParameter]: hint } : undefined,
      // Stored in this browser under the one-time state of this sign-in.
      state: returnTo ?? undefined,
    });
  };

  signOut = async () => {
    const { logoutStyle, logoutEndpoint, clientId } = this.identity;
    const back = window.location.origin + paths.login;
    // Before navigating: unsent uploads would make the browser ask for confirmation.
    clearUserData();
    if (logoutStyle === 'cognito' && logoutEndpoint) {
      this.signOutLocally();
      const address = new URL(logoutEndpoint);
      address.searchParams.set('client_id', clientId);
      address.searchParams.set('logout_uri', back);
      window.location.assign(address);
      return;
    }
    // Until the browser navigates, the page shows neither the user nor a visitor's view.
    this.state.setState({ isLoading: true });
    try {
      const client = await this.loadClient();
      await client.signoutRedirect({ post_logout_redirect_uri: back });
    } catch {
      // The provider is unreachable; this browser ends the session anyway.
    }
    this.signOutLocally();
  };

  /** Signs out of this browser only, without a redirect to the identity provider. */
  signOutLocally = () => {
    clearUserData();
    this.state.setState({ hasSignedOut: true });
    this.clearUser();
    // After the next render: queries that are still in use would be fetched again.
    setTimeout(this.events.onSignedOut);
  };

  private clearUser() {
    try {
      sessionStorage.removeItem(this.storageKey);
    } catch {
      // Storage is blocked, so it holds nothing.
    }
    this.state.setState({ isLoading: false, user: null });
  }

  private expire = () => {
    if (!this.state.getState().user) return;
    this.clearUser();
    this.events.onExpired();
  };

  private loadClient(): Promise<UserManager> {
    this.client ??= import('./identity-client')
      .then(({ createIdentityClient }) => createIdentityClient(this.identity))
      .catch((error) => {
        this.client = null;
        throw error;
      });
    return this.client;
  }

  private async finishSignIn() {
    this.state.setState({ isLoading: true });
    try {
      const client = await this.loadClient();
      const user = (await client.signinCallback()) ?? null;
      // Removes the one-time code from the address and the history.
      window.history.replaceState(null, '', window.location.pathname);
      this.state.setState({ isLoading: false, user, returnTo: pathWithin(user?.state) });
    } catch (error) {
      this.state.setState({ isLoading: false, error });
    }
  }

  private renew = async () => {
    const { user } = this.state.getState();
    if (!user || this.isRenewing || secondsLeft(user) > RENEW_BEFORE_SECONDS) return;
    this.isRenewing = true;
    try {
      const client = await this.loadClient();
      const renewed = await client.signinSilent();
      // The user may have signed out in the meantime.
      if (this.state.getState().user === user) this.state.setState({ user: renewed });
      else this.clearUser();
    } catch (error) {
      // A network error is retried while the token is valid; a refusal is final.
      if (!isNetworkError(error) || secondsLeft(user) <= 0) this.expire();
    } finally {
      this.isRenewing = false;
    }
  };

  private token(): string | null {
    const { user } = this.state.getState();
    return user && secondsLeft(user) > 0 ? user.access_token : null;
  }

  private readStoredUser(): StoredUser | null {
    try {
      const user: StoredUser | null = JSON.parse(sessionStorage.getItem(this.storageKey) ?? 'null');
      return user && secondsLeft(user) > 0 ? user : null;
    } catch {
      return null;
    }
  }
}

export const SessionContext = createContext<Session | null>(null);

export function useSession() {
  const session = useContext(SessionContext);
  if (!session) throw new Error('useSession needs a SessionContext above it');
  const { isLoading, user, error, returnTo, hasSignedOut } = useStore(session.state);
  const { signIn, signOut, signOutLocally } = session;
  return {
    isLoading,
    isSignedIn: user !== null,
    userId: user?.profile.sub ?? null,
    error,
    returnTo,
    hasSignedOut,
    email: user?.profile.email ?? null,
    signIn,
    signOut,
    signOutLocally,
  };
}

/** Only the two callback paths finish a sign-in; elsewhere `code` and `state` have no meaning. */
function isCallback({ pathname, search }: Location): boolean {
  const answer = new URLSearchParams(search);
  return (
    (pathname === paths.authCallback || pathname === paths.authCallbackMagic) &&
    (answer.has('code') || answer.has('error')) &&
    answer.has('state')
  );
}

function secondsLeft({ expires_at }: StoredUser): number {
  return expires_at === undefined ? Number.POSITIVE_INFINITY : expires_at - Date.now() / 1000;
}

function isNetworkError(error: unknown): boolean {
  return error instanceof TypeError || (error instanceof Error && error.name === 'ErrorTimeout');
}
