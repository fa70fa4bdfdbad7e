import { Link, useLocation } from 'react-router';
import { SignInPanel } from '@/features/auth/sign-in-panel';
import { paths } from '@/lib/paths';
import { rich } from '@/lib/rich';
import { useSession } from '@/lib/session';
import { t } from '@/lib/translate';

export default function LoginRoute() {
  // Passes on the page to return to.
  const { state } = useLocation();
  const { hasSignedOut } = useSession();
  return (
    <SignInPanel
      title={t('Login')}
      // Perhaps in another tab, or by deleting the account: the images may be gone.
      text={
        hasSignedOut
          ? t('You have been signed out.')
          : t('Welcome back. Your images are where you left them.')
      }
      labelOf={(provider) => t('Login with {provider}', { provider })}
    >
      {rich('New here? <link>Create an account</link>', {
        link: (text) => (
          <Link
            to={paths.signup}
            state={state}
            className="font-semibold text-accent underline underline-offset-4"
          >
            {text}
          </Link>
        ),
      })}
    </SignInPanel>
  );
}
