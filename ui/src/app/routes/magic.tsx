import { useMutation } from '@tanstack/react-query';
import { Suspense } from 'react';
import { Button } from '@/components/button';
import { lazyWithRetry } from '@/components/lazy-with-retry';
import { Notice } from '@/components/notice';
import { PageHeader } from '@/components/page-header';
import { PageSkeleton } from '@/components/page-skeleton';
import { Skeleton } from '@/components/skeleton';
import { signInFailure } from '@/features/auth/texts';
import { magicFix } from '@/features/catalog/magic-fix';
import { ProgressBadge } from '@/features/runs/progress-badge';
import { useConfig } from '@/lib/env';
import { paths } from '@/lib/paths';
import { useSession } from '@/lib/session';
import { toolName } from '@/lib/tool-names';
import { t } from '@/lib/translate';
import { Installed } from './installed';

// Users need only the picker, visitors only the examples.
const ImagePicker = lazyWithRetry(() => import('@/features/images/image-picker'));
const FixTabs = lazyWithRetry(() => import('@/features/examples/fix-tabs'));

const placeholder = <Skeleton className="h-96 rounded-lg" />;

/** The start page of Magic Fix: a login and examples for visitors, the image picker for users. */
export default function MagicRoute() {
  const { isLoading, isSignedIn } = useSession();
  const { limits } = useConfig();

  if (isLoading) return <PageSkeleton />;
  if (!isSignedIn) {
    return (
      <Installed name="magic-fix">
        <MagicForVisitors />
      </Installed>
    );
  }
  return (
    <Installed name="magic-fix">
      <div className="page py-8 md:py-12">
        <PageHeader
          title={toolName('magic-fix')}
          text={t('Choose one of your images, or upload new ones. Then draw over what should change.')}
        />
        <Suspense fallback={placeholder}>
          <ImagePicker
            prefix={magicFix.pagePath}
            maxDimension={limits[magicFix.limit]}
            badge={(imageId) => <ProgressBadge imageId={imageId} />}
          />
        </Suspense>
      </div>
    </Installed>
  );
}

function MagicForVisitors() {
  const { signIn } = useSession();
  const login = useMutation({ mutationFn: () => signIn(null, { callback: paths.authCallbackMagic }) });
  const title = t('Magic Fix requires logging in');

  return (
    <div className="page grid items-start gap-8 py-8 md:py-12 lg:grid-cols-[2fr_3fr] lg:gap-12">
      <title>{`${title} · Retouch`}</title>
      <div className="grid justify-items-start gap-6">
        <h1 className="text-xl font-bold md:text-2xl">{title}</h1>
        <p className="text-soft">
          {t(
            'Draw over an area and describe what should happen there. With an exact mask, no pixel outside it changes; without, the result blends in a few pixels beyond it. Your account keeps the images you fix.',
          )}
        </p>
        <Button size="lg" isBusy={login.isPending} onClick={() => login.mutate()}>
          {t('Login')}
        </Button>
        {login.isError && <Notice tone="error">{signInFailure(login.error)}</Notice>}
      </div>
      <section aria-labelledby="examples" className="min-w-0">
        <h2 id="examples" className="mb-4 text-lg font-semibold">
          {t('What you can do with it')}
        </h2>
        <Suspense fallback={placeholder}>
          <FixTabs label={t('Examples')} />
        </Suspense>
      </section>
    </div>
  );
}
