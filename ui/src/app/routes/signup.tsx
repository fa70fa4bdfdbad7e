import { Link, useLocation } from 'react-router';
import { SignInPanel } from '@/features/auth/sign-in-panel';
import { useConfig } from '@/lib/env';
import { paths } from '@/lib/paths';
import { rich } from '@/lib/rich';
import { plural, t } from '@/lib/translate';

export default function SignUpRoute() {
  // Passes on the page to return to.
  const { state } = useLocation();
  const { newUserCredits } = useConfig();
  return (
    <SignInPanel
      title={t('Create your account')}
      text={plural(newUserCredits, {
        one: 'You start with # free credit. You must be at least 18 years old.',
        other: 'You start with # free credits. You must be at least 18 years old.',
      })}
      labelOf={(provider) => t('Continue with {provider}', { provider })}
    >
      {rich('Already have one? <link>Login</link>', {
        link: (text) => (
          <Link
            to={paths.login}
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
