import { Navigate, Outlet } from 'react-router';
import { paths } from '@/lib/paths';
import { useSession } from '@/lib/session';

/** Routes for signed-in people. Nothing is shown until it is known who is there. */
export function Protected() {
  const { isLoading, isSignedIn } = useSession();
  if (isLoading) return null;
  return isSignedIn ? <Outlet /> : <Navigate to={paths.login} replace />;
}
