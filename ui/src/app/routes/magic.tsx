import { useState } from 'react';
import { Button } from '@/components/button';
import { CenteredPage } from '@/components/centered-page';
import { Notice } from '@/components/notice';
import { PageSkeleton } from '@/components/page-skeleton';
import { authTexts } from '@/features/auth/texts';
import { paths } from '@/lib/paths';
import { useSession } from '@/lib/session';
import ToolNotInstalled from './tool-not-installed';

export default function MagicRoute() {
  const { isLoading, isSignedIn, signIn } = useSession();
  const [hasFailed, setFailed] = useState(false);

  if (isLoading) return <PageSkeleton />;
  if (isSignedIn) return <ToolNotInstalled name="magic-fix" />;
  return (
    <CenteredPage title="Magic Fix requires logging in">
      <p>
        Paint over an area and say in words what it should become. The images you fix are kept in your
        account.
      </p>
      <Button size="lg" onClick={() => signIn(null, paths.authCallbackMagic).catch(() => setFailed(true))}>
        Login
      </Button>
      {hasFailed && <Notice tone="error">{authTexts.unreachable}</Notice>}
    </CenteredPage>
  );
}
