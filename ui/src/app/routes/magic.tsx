import { lazy, Suspense, useState } from 'react';
import { Button } from '@/components/button';
import { Notice } from '@/components/notice';
import { PageHeader } from '@/components/page-header';
import { PageSkeleton } from '@/components/page-skeleton';
import { Skeleton } from '@/components/skeleton';
import { authTexts } from '@/features/auth/texts';
import { magicFix } from '@/features/tools/magic-fix/magic-fix';
import { useConfig } from '@/lib/env';
import { paths } from '@/lib/paths';
import { useSession } from '@/lib/session';
import { toolNames } from '@/lib/tool-names';
import { Installed } from './installed';

// Nobody needs both: whoever picks has seen what it does.
const ImagePicker = lazy(() => import('@/features/images/image-picker'));
const RunningBadge = lazy(() => import('@/features/tools/under-way/running-badge'));
const FixExamples = lazy(() => import('@/features/tools/magic-fix/examples/fix-examples'));

const place = <Skeleton className="h-96 rounded-lg" />;

/** Where Magic Fix begins: with the way in and some examples, or with the choice of an image. */
export default function MagicRoute() {
  const { isLoading, isSignedIn } = useSession();
  const { limits } = useConfig();

  if (isLoading) return <PageSkeleton />;
  if (!isSignedIn) return <MagicForVisitors />;
  return (
    <Installed name="magic-fix">
      <div className="page py-8 md:py-12">
        <PageHeader
          title={toolNames['magic-fix']}
          text="Choose one of your images, or upload a new one. Then draw over what should change."
        />
        <Suspense fallback={place}>
          <ImagePicker
            prefix={magicFix.address}
            maxDimension={limits[magicFix.limit]}
            badge={(imageId) => (
              <Suspense>
                <RunningBadge imageId={imageId} />
              </Suspense>
            )}
          />
        </Suspense>
      </div>
    </Installed>
  );
}

function MagicForVisitors() {
  const { signIn } = useSession();
  const [hasFailed, setFailed] = useState(false);
  const title = 'Magic Fix requires logging in';

  return (
    <div className="page grid items-start gap-8 py-8 md:py-12 lg:grid-cols-[2fr_3fr] lg:gap-12">
      <title>{`${title} · Retouch`}</title>
      <div className="grid justify-items-start gap-6 lg:pt-12">
        <h1 className="text-xl font-bold md:text-2xl">{title}</h1>
        <p className="text-soft">
          Draw over an area and say in words what should happen there. Everything outside your mask stays as
          it is, and the images you fix are kept in your account.
        </p>
        <Button
          size="lg"
          onClick={() => signIn(null, { callback: paths.authCallbackMagic }).catch(() => setFailed(true))}
        >
          Login
        </Button>
        {hasFailed && <Notice tone="error">{authTexts.unreachable}</Notice>}
      </div>
      <Suspense fallback={place}>
        <FixExamples />
      </Suspense>
    </div>
  );
}
