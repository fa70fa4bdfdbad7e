import { LegalPage } from '@/features/legal/legal-page';
import { privacySections } from '@/features/legal/privacy';

export default function PrivacyRoute() {
  return (
    <LegalPage
      title="Privacy Policy"
      date="Last updated May 21, 2025"
      summary="In short: images are kept until you delete them, only you can access them, and deleting your account takes everything that is yours with it."
      sections={privacySections}
    />
  );
}
