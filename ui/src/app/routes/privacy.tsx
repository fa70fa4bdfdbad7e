import { LegalPage } from '@/features/legal/legal-page';
import { privacySections } from '@/features/legal/privacy';

export default function PrivacyRoute() {
  return (
    <LegalPage
      title="Privacy Policy"
      date="Last updated May 21, 2025"
      summary="In short: we keep your images until you delete them, only you can access them, and deleting your account deletes everything that is yours."
      sections={privacySections}
    />
  );
}
