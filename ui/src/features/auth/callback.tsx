import { useEffect } from 'react';
import { Navigate } from 'react-router';
import { ButtonLink } from '@/components/button-link';
import { CenteredPage } from '@/components/centered-page';
import { Spinner } from '@/components/spinner';
import { useConsent } from '@/lib/consent';
import { useConfig } from '@/lib/env';
import { paths } from '@/lib/paths';
import { useSession } from '@/lib/session';
import { t } from '@/lib/translate';
import { reportConversion } from './report-conversion';
import { authTexts } from './texts';

/** The return page of the identity provider. Redirects to the page that required the sign-in, otherwise to `to`. */
export function Callback({ to }: { to: string }) {
  const { isLoading, isSignedIn, error, returnTo } = useSession();
  const adTag = useConfig().site.adTag;
  const isAllowed = useConsent(({ consent }) => consent === 'given');

  useEffect(() => {
    if (isSignedIn && adTag && isAllowed) reportConversion(adTag);
  }, [isSignedIn, adTag, isAllowed]);

  if (isLoading) {
    return (
      <div className="flex items-center justify-center gap-3 py-24 text-soft">
        <Spinner label={t('Signing you in…')} />
      </div>
    );
  }
  if (isSignedIn) return <Navigate to={returnTo ?? to} replace />;
  return (
    <CenteredPage icon="warning" title={t(authTexts.loginFailed)}>
      <p>
        {isUnreachable(error)
          ? t(authTexts.unreachable)
          : t('The sign-in was canceled, or its link has expired. Nothing has changed.')}
      </p>
      <ButtonLink to={paths.login} state={returnTo ?? to}>
        {t('Try again')}
      </ButtonLink>
    </CenteredPage>
  );
}

/** Browsers reject a request that reaches no server with a TypeError; the identity client gives up on a slow one. */
const isUnreachable = (error: unknown) =>
  error instanceof TypeError || (error instanceof Error && error.name === 'ErrorTimeout');
