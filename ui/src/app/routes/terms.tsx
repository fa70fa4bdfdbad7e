import { LegalPage } from '@/features/legal/legal-page';

export default function TermsRoute() {
  return (
    <LegalPage
      title="Terms of Service"
      date="Effective July 31, 2025"
      sections={[
        { title: 'Who may register', text: 'You must be at least 18 years old to register an account.' },
        {
          title: 'Credits',
          text: 'Runs of the AI tools are paid with credits. A run that fails costs nothing. Credits are non-refundable.',
        },
        {
          title: 'Your images',
          text: 'Images are kept until you delete them, and only their owner can access them.',
        },
        {
          title: 'Closing your account',
          text: 'A request to delete your account is handled within one week.',
        },
        {
          title: 'Disputes',
          text: 'We first try to settle a dispute informally for 30 days. After that it goes to the courts of the home country of the company that runs this service.',
        },
        {
          title: 'Liability',
          text: 'Liability is capped at the amount you paid in the last 6 months.',
        },
      ]}
    />
  );
}
