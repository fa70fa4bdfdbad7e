import { Link, useLocation } from 'react-router';
import { SignInPanel } from '@/features/auth/sign-in-panel';
import { useConfig } from '@/lib/env';
import { paths } from '@/lib/paths';

export default function SignUpRoute() {
  // Passes on the page to return to.
  const { state } = useLocation();
  const { newUserCredits } = useConfig();
  return (
    <SignInPanel
      title="Create your account"
      text={`You start with ${newUserCredits} free credits. You must be at least 18 years old.`}
      verb="Continue with"
    >
      Already have one?{' '}
      <Link to={paths.login} state={state} className="font-semibold text-accent underline underline-offset-4">
        Login
      </Link>
    </SignInPanel>
  );
}
