import { LegalPage } from '@/features/legal/legal-page';
import { termsDate, termsSections, termsSummary } from '@/features/legal/terms';
import { t } from '@/lib/translate';

export default function TermsRoute() {
  return (
    <LegalPage
      title={t('Terms of Service')}
      date={termsDate}
      summary={termsSummary}
      sections={termsSections}
    />
  );
}
