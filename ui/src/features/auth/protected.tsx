import { Navigate, Outlet, useLocation } from 'react-router';
import { paths } from '@/lib/paths';
import { useSession } from '@/lib/session';

/** Routes for signed-in people. Nothing is shown until it is known who is there. */
export function Protected() {
  const { isLoading, isSignedIn, hasSignedOut } = useSession();
  const { pathname, search } = useLocation();
  if (isLoading) return null;
  if (isSignedIn) return <Outlet />;
  // The page that was asked for, to be shown after the sign-in.
  return <Navigate to={paths.login} replace state={hasSignedOut ? null : pathname + search} />;
}
