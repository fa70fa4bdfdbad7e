import type { User, UserManager } from 'oidc-client-ts';
import { createContext, useContext } from 'react';
import { createStore, useStore } from 'zustand';
import { setCredentials } from './api-client';
import type { Identity } from './api-types';
import { forgetPerson } from './forget';
import { pathWithin } from './path-within';
import { paths } from './paths';

export type Provider = 'google' | 'facebook' | 'password';

/** Of what the identity client keeps in the tab's storage, the part that is needed without it. */
type Kept = Pick<User, 'access_token' | 'expires_at' | 'profile'>;

type SessionState = {
  isLoading: boolean;
  user: Kept | null;
  error: unknown;
  /** The page that a visitor was sent away from to sign in. */
  returnTo: string | null;
  /** Whether somebody signed out here: what they were looking at is nobody's to return to. */
  hasSignedOut: boolean;
};

type SessionEvents = {
  /** The session was ended by the server, or by the end of what can be renewed. */
  onEnd: () => void;
  /** Nobody is signed in any more: whatever was fetched for them has to go. */
  onForget: () => void;
};

const CHECK_MS = 5_000;
const RENEW_BEFORE_SECONDS = 60;

/**
 * Who is signed in, in this tab. The client of the identity provider is an eighth of the page's code, so it
 * is fetched when there is something to say: to begin or finish a sign-in, to renew a token, to sign out.
 */
export class Session {
  readonly state = createStore<SessionState>(() => ({
    isLoading: false,
    user: null,
    error: null,
    returnTo: null,
    hasSignedOut: false,
  }));
  private readonly key: string;
  private connecting: Promise<UserManager> | null = null;
  private isRenewing = false;

  constructor(
    private readonly identity: Identity,
    private readonly events: SessionEvents,
  ) {
    this.key = `oidc.user:${identity.issuer}:${identity.clientId}`;
    if (isReturning(window.location)) void this.finishSignIn();
    else this.state.setState({ user: this.kept() });
    setCredentials({ token: async () => this.token(), onRefused: this.end });
    setInterval(this.renew, CHECK_MS);
  }

  signIn = async (
    provider: Provider | null,
    { callback = paths.authCallback as string, returnTo = null as string | null } = {},
  ) => {
    const { providers, idpHintParameter } = this.identity;
    const hint = provider ? providers[provider] : null;
    const client = await this.connect();
    await client.signinRedirect({
      redirect_uri: window.location.origin + callback,
      extraQueryParams: hint && idpHintParameter ? { [idpHintParameter]: hint } : undefined,
      // Kept in this browser, and found by the one-time state of this sign-in.
      state: returnTo ?? undefined,
    });
  };

  signOut = async () => {
    const { logoutStyle, logoutEndpoint, clientId } = this.identity;
    const back = window.location.origin + paths.login;
    // Before the browser is asked to leave: what is still being sent would make it ask back.
    forgetPerson();
    if (logoutStyle === 'cognito' && logoutEndpoint) {
      this.forget();
      const address = new URL(logoutEndpoint);
      address.searchParams.set('client_id', clientId);
      address.searchParams.set('logout_uri', back);
      window.location.assign(address);
      return;
    }
    // Until the browser leaves, the page shows neither who was here nor that nobody is.
    this.state.setState({ isLoading: true });
    try {
      const client = await this.connect();
      await client.signoutRedirect({ post_logout_redirect_uri: back });
    } catch {
      // The provider cannot be reached; this browser forgets the session all the same.
    }
    this.forget();
  };

  /** Signs out of this browser alone, without a visit to the identity provider. */
  forget = () => {
    forgetPerson();
    this.state.setState({ hasSignedOut: true });
    this.drop();
    // Not before the page is drawn without them: what is still looked at would be fetched again.
    setTimeout(this.events.onForget);
  };

  private drop() {
    try {
      sessionStorage.removeItem(this.key);
    } catch {
      // A storage that is blocked has kept nothing.
    }
    this.state.setState({ isLoading: false, user: null });
  }

  private end = () => {
    if (!this.state.getState().user) return;
    this.drop();
    this.events.onEnd();
  };

  private connect(): Promise<UserManager> {
    this.connecting ??= import('./identity-client')
      .then(({ createIdentityClient }) => createIdentityClient(this.identity))
      .catch((error) => {
        this.connecting = null;
        throw error;
      });
    return this.connecting;
  }

  private async finishSignIn() {
    this.state.setState({ isLoading: true });
    try {
      const client = await this.connect();
      const user = (await client.signinCallback()) ?? null;
      // The one-time code must not stay in the address or the history.
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
      const client = await this.connect();
      const renewed = await client.signinSilent();
      // Whoever signed out meanwhile stays signed out.
      if (this.state.getState().user === user) this.state.setState({ user: renewed });
      else this.drop();
    } catch (error) {
      // What failed on the way is tried again for as long as the token lasts; a refusal is final.
      if (!isLost(error) || secondsLeft(user) <= 0) this.end();
    } finally {
      this.isRenewing = false;
    }
  };

  private token(): string | null {
    const { user } = this.state.getState();
    return user && secondsLeft(user) > 0 ? user.access_token : null;
  }

  private kept(): Kept | null {
    try {
      const user: Kept | null = JSON.parse(sessionStorage.getItem(this.key) ?? 'null');
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
  const { signIn, signOut, forget } = session;
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
    forget,
  };
}

/** Only the two return addresses finish a sign-in; elsewhere `code` and `state` mean nothing. */
function isReturning({ pathname, search }: Location): boolean {
  const answer = new URLSearchParams(search);
  return (
    (pathname === paths.authCallback || pathname === paths.authCallbackMagic) &&
    (answer.has('code') || answer.has('error')) &&
    answer.has('state')
  );
}

function secondsLeft({ expires_at }: Kept): number {
  return expires_at === undefined ? Number.POSITIVE_INFINITY : expires_at - Date.now() / 1000;
}

function isLost(error: unknown): boolean {
  return error instanceof TypeError || (error instanceof Error && error.name === 'ErrorTimeout');
}
