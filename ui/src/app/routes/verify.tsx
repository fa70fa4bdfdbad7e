import { useLocation } from 'react-router';
import { PageHeader } from '@/components/page-header';
import { AboutCredentials } from '@/features/verify/about-credentials';
import { VerifyPanel } from '@/features/verify/verify-panel';
import { t } from '@/lib/translate';

export default function VerifyRoute() {
  const { state } = useLocation();
  return (
    <div className="page py-8 md:py-12">
      <PageHeader
        title={t('Verify a picture')}
        text={t(
          'See what a picture says of itself: how it was made, with which program, and who signed that. It works with pictures from anywhere and costs nothing. We read the picture on this server and store nothing of it.',
        )}
      />
      <VerifyPanel linked={state?.picture ?? null} />
      <AboutCredentials />
    </div>
  );
}
