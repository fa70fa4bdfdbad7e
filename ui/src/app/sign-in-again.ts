import type { DataRouter } from 'react-router';
import { paths } from '@/lib/paths';

/** Opens the login page, which returns to the current page after the sign-in. */
export function signInAgain(router: DataRouter) {
  const { pathname, search, state } = router.state.location;
  // These two have the page to return to in their state. They would sign out the user who returns to them.
  const isSigningIn = pathname === paths.login || pathname === paths.signup;
  void router.navigate(paths.login, { state: isSigningIn ? state : pathname + search });
}
