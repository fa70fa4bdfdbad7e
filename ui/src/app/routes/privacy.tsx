import { LegalPage } from '@/features/legal/legal-page';

export default function PrivacyRoute() {
  return (
    <LegalPage
      title="Privacy Policy"
      date="Last updated May 21, 2025"
      sections={[
        { title: 'Who this is for', text: 'The service is not for anyone under 16.' },
        {
          title: 'What is stored',
          text: 'Your email address, your credits and their history, the images you upload and the results made from them. Metadata such as the place a photo was taken is removed from every upload.',
        },
        {
          title: 'How long',
          text: 'Images are kept until you delete them, and only you can access them. A picture processed without an account is kept for one hour.',
        },
        {
          title: 'In your browser',
          text: 'Your sign-in lives in this tab and ends when you close it. The colour theme you choose is remembered. There are no tracking cookies of ours.',
        },
        {
          title: 'Deleting your account',
          text: 'A request to delete your account with everything in it is handled within one week.',
        },
      ]}
    />
  );
}
