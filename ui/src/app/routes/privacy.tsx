import { LegalPage } from '@/features/legal/legal-page';
import { privacyDate, privacySections, privacySummary } from '@/features/legal/privacy';
import { t } from '@/lib/translate';

export default function PrivacyRoute() {
  return (
    <LegalPage
      title={t('Privacy Policy')}
      date={privacyDate}
      summary={privacySummary}
      sections={privacySections}
    />
  );
}
