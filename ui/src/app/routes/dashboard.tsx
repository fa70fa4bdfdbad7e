import { Closing } from '@/features/landing/closing';
import { Examples } from '@/features/landing/examples';
import { Hero } from '@/features/landing/hero';
import { Rating } from '@/features/landing/rating';
import { Steps } from '@/features/landing/steps';
import { t } from '@/lib/translate';

export default function DashboardRoute() {
  return (
    <>
      <title>{t('Retouch · AI Image Editing Made Simple')}</title>
      <Hero />
      <Examples />
      <Steps />
      <Rating />
      <Closing />
    </>
  );
}
