import { Navigate, Outlet, useLocation } from 'react-router';
import { paths } from '@/lib/paths';
import { useSession } from '@/lib/session';

/** Routes for signed-in users. Renders nothing while the session is loading. */
export function Protected() {
  const { isLoading, isSignedIn, hasSignedOut } = useSession();
  const { pathname, search } = useLocation();
  if (isLoading) return null;
  if (isSignedIn) return <Outlet />;
  // The state is the page to return to after the sign-in.
  return <Navigate to={paths.login} replace state={hasSignedOut ? null : pathname + search} />;
}
