import { Link, useLocation } from 'react-router';
import { SignInPanel } from '@/features/auth/sign-in-panel';
import { paths } from '@/lib/paths';

export default function LoginRoute() {
  // Passes on the page to return to.
  const { state } = useLocation();
  return (
    <SignInPanel title="Login" text="Welcome back. Your images are where you left them." verb="Login with">
      New here?{' '}
      <Link
        to={paths.signup}
        state={state}
        className="font-semibold text-accent underline underline-offset-4"
      >
        Create an account
      </Link>
    </SignInPanel>
  );
}
