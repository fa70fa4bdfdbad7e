import { LegalPage } from '@/features/legal/legal-page';
import { termsSections } from '@/features/legal/terms';

export default function TermsRoute() {
  return (
    <LegalPage
      title="Terms of Service"
      date="Effective July 31, 2025"
      summary="In short: you must be 18 to register, runs are paid with credits that are non-refundable, your images stay yours, and some models come with rules of their own."
      sections={termsSections}
    />
  );
}
