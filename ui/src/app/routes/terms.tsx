import { LegalPage } from '@/features/legal/legal-page';
import { termsSections } from '@/features/legal/terms';

export default function TermsRoute() {
  return (
    <LegalPage
      title="Terms of Service"
      date="Effective July 31, 2025"
      summary="In short: you must be 18 to register, you pay for runs with non-refundable credits, your images remain yours, and some models have rules of their own."
      sections={termsSections}
    />
  );
}
