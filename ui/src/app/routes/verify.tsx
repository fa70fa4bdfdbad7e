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
          'See how a picture was made, with which program, and who signed it. This works for pictures from anywhere and is free. We read the picture on this server and never store it.',
        )}
      />
      <VerifyPanel linked={state?.picture ?? null} />
      <AboutCredentials />
    </div>
  );
}
