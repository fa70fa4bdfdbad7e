import { createContext, useContext } from 'react';
import { createStore, useStore } from 'zustand';
import { setCredentials, startAccount } from './api-client';
import type { Identity } from './api-types';
import type { IdentityClient, Provider } from './identity-client';
import { loadWithRetry } from './load-with-retry';
import { notifyInfo } from './notify';
import { pathWithin } from './path-within';
import { paths } from './paths';
import { ProviderUnavailable } from './provider-unavailable';
import { isRefusal, renewUser } from './renew-user';
import { clearUserData } from './sign-out-cleanup';
import {
  expireStoredUser,
  forgetAccount,
  forgetSignIn,
  hasExpired,
  isFromSignIn,
  readOwner,
  readStoredUser,
  removeStoredUser,
  type StoredUser,
  secondsLeft,
  storedUserKey,
  storeOwner,
  storeSignIn,
} from './stored-user';
import { t } from './translate';

type SessionState = {
  isLoading: boolean;
  user: StoredUser | null;
  error: unknown;
  /** The page that sent a visitor to sign in. */
  returnTo: string | null;
  /** Whether the last user signed out in this browser; the next one must not return to that user's page. */
  hasSignedOut: boolean;
};

type SessionEvents = {
  /** The provider or the API refused the user's tokens, in this tab or another one. */
  onExpired: () => void;
  /** The user signed out: cached data has to go. */
  onSignedOut: () => void;
  /** Another user has signed in in another tab: nothing of the page may stay. */
  onUserChanged: () => void;
};

const CHECK_MS = 5_000;
/** Renewals start this long before the token expires. */
const RENEW_BEFORE_SECONDS = 60;
/** A call with a token that expires sooner waits for the renewal. */
const MIN_SECONDS_LEFT = 5;

const importClient = () => import('./identity-client');

/**
 * The user's session, which all tabs of the browser share. The identity client is an eighth of the page's code, so it
 * loads only to begin or finish a sign-in, to renew a token, or to sign out.
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
  private readonly listeners = new AbortController();
  private client: Promise<IdentityClient> | null = null;
  /** The renewal in progress. Every call that needs a token waits for the same one. */
  private renewal: Promise<void> | null = null;
  /** The id of the user whose work this tab may have. It outlives their session. */
  private owner = readOwner();

  constructor(
    private readonly identity: Identity,
    private readonly events: SessionEvents,
  ) {
    this.storageKey = storedUserKey(identity);
    if (isCallback(window.location)) void this.finishSignIn();
    else this.setUser(readStoredUser(this.storageKey));
    setCredentials({
      token: this.token,
      replaceToken: this.replaceToken,
      onRefused: this.expire,
      startAgain: this.startAgain,
      onDeleted: this.leaveDeletedAccount,
    });
    this.watch();
  }

  /** Stops renewing, and forgets the other tabs. */
  dispose() {
    this.listeners.abort();
  }

  /**
   * Returns a valid token, or null if nobody is signed in. Waits for a renewal that is due; rejects if that fails for
   * now, as without a network.
   */
  token = async (): Promise<string | null> => {
    const { user } = this.state.getState();
    if (user && secondsLeft(user) < MIN_SECONDS_LEFT) await this.renew();
    return this.state.getState().user?.access_token ?? null;
  };

  /** Returns another token than the one the API has refused; null if there is none. */
  private replaceToken = async (refused: string | null): Promise<string | null> => {
    await this.renewal;
    const { user } = this.state.getState();
    if (user && user.access_token === refused) {
      if (!user.refresh_token) return null;
      await this.renew();
    }
    const token = await this.token();
    return token === refused ? null : token;
  };

  signIn = async (
    provider: Provider | null,
    { callback = paths.authCallback as string, returnTo = null as string | null } = {},
  ) => {
    const client = await this.loadClient();
    await client.signIn(provider, window.location.origin + callback, returnTo);
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
    // The browser leaves this page before `signOut` of the client returns.
    forgetSignIn();
    // Until the browser navigates, the page shows neither the user nor a visitor's view.
    this.state.setState({ isLoading: true });
    try {
      const client = await this.loadClient();
      await client.signOut();
    } catch {
      // The provider is unreachable; this browser ends the session anyway.
    }
    this.signOutLocally();
  };

  /** Signs out of this browser only, without a redirect to the identity provider. */
  signOutLocally = () => {
    clearUserData();
    this.owner = null;
    this.state.setState({ hasSignedOut: true });
    this.clearUser();
    // After the next render: queries that are still in use would be fetched again.
    setTimeout(this.events.onSignedOut);
  };

  private clearUser() {
    removeStoredUser(this.storageKey);
    this.state.setState({ isLoading: false, user: null });
  }

  private startAgain = async (token: string) => (await isFromSignIn(token)) && startAccount(token);

  private leaveDeletedAccount = () => {
    const { user } = this.state.getState();
    if (!user || this.takeNewer()) return;
    forgetAccount(user.profile.sub);
    this.signOutLocally();
    notifyInfo(t('Your account was deleted'));
  };

  private expire = () => {
    if (!this.state.getState().user || this.takeNewer()) return;
    expireStoredUser(this.storageKey);
    this.state.setState({ isLoading: false, user: null });
    this.events.onExpired();
  };

  private loadClient(): Promise<IdentityClient> {
    this.client ??= loadWithRetry(importClient)
      .then(({ IdentityClient }) => new IdentityClient(this.identity))
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
      if (user) await storeSignIn(user.access_token);
      this.arrive(user, pathWithin(user?.state));
    } catch (error) {
      // The address may come from the history: its sign-in was finished before.
      const user = readStoredUser(this.storageKey);
      if (user) this.arrive(user, null);
      else this.state.setState({ isLoading: false, error });
    }
  }

  private arrive(user: StoredUser | null, returnTo: string | null) {
    // Removes the one-time code from the address and the history.
    window.history.replaceState(null, '', window.location.pathname);
    this.setUser(user);
    this.state.setState({ isLoading: false, returnTo });
  }

  /** Renews the token in time, and follows what other tabs do to the session. */
  private watch() {
    const { signal } = this.listeners;
    const timer = setInterval(this.renewIfDue, CHECK_MS);
    signal.addEventListener('abort', () => clearInterval(timer));
    window.addEventListener('storage', this.readOtherTab, { signal });
    window.addEventListener('online', this.renewIfDue, { signal });
    // A page that was asleep has missed events.
    const wake = () => {
      if (document.visibilityState !== 'visible') return;
      this.readOtherTab();
      this.renewIfDue();
    };
    document.addEventListener('visibilitychange', wake, { signal });
    window.addEventListener('pageshow', wake, { signal });
  }

  private renewIfDue = () => {
    const { user } = this.state.getState();
    if (!user || secondsLeft(user) > RENEW_BEFORE_SECONDS || !navigator.onLine) return;
    // Tried again at the next check.
    this.renew().catch(() => {});
  };

  private renew(): Promise<void> {
    this.renewal ??= this.renewOnce().finally(() => {
      this.renewal = null;
    });
    return this.renewal;
  }

  private async renewOnce() {
    const { user } = this.state.getState();
    if (!user) return;
    if (!user.refresh_token) {
      if (secondsLeft(user) <= 0) this.expire();
      return;
    }
    try {
      const renewed = await renewUser(this.storageKey, user, () => this.loadClient());
      const now = this.state.getState();
      // Discards tokens renewed for a user who has signed out in the meantime.
      if (!now.user && now.hasSignedOut) this.clearUser();
      else this.take(renewed);
    } catch (error) {
      if (!isRefusal(error)) throw new ProviderUnavailable(String(error), { cause: error });
      this.expire();
    }
  }

  private readOtherTab = () => {
    // A sign-in that is being finished here is newer.
    if (!this.state.getState().isLoading) this.take(readStoredUser(this.storageKey));
  };

  /** Takes the user of another tab, of whom a tab that was frozen has not heard. Returns false if there is none. */
  private takeNewer(): boolean {
    const stored = readStoredUser(this.storageKey);
    if (!stored || stored.access_token === this.state.getState().user?.access_token) return false;
    this.take(stored);
    return true;
  }

  /** Takes what this or another tab has stored: renewed tokens, a sign-in, the end of the session, or a sign-out. */
  private take(stored: StoredUser | null) {
    const { user } = this.state.getState();
    if (stored?.access_token === user?.access_token) return;
    if (stored && this.hasWorkOfAnother(stored)) {
      clearUserData();
      return this.events.onUserChanged();
    }
    if (stored) return this.setUser(stored);
    if (user && hasExpired(this.storageKey)) return this.expire();
    this.signOutLocally();
  }

  /** Takes a user into a page that shows nothing of another one. */
  private setUser(user: StoredUser | null) {
    if (!user) return this.state.setState({ user });
    if (this.hasWorkOfAnother(user)) clearUserData();
    this.owner = user.profile.sub;
    storeOwner(this.owner);
    // A sign-in that failed before no longer matters.
    this.state.setState({ user, error: null, hasSignedOut: false });
  }

  private hasWorkOfAnother({ profile }: StoredUser): boolean {
    return this.owner !== null && this.owner !== profile.sub;
  }
}

export const SessionContext = createContext<Session | null>(null);

export function useSession() {
  const session = useContext(SessionContext);
  if (!session) throw new Error('No SessionContext');
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
