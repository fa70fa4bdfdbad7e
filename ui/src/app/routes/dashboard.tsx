import { Closing } from '@/features/landing/closing';
import { Hero } from '@/features/landing/hero';
import { Steps } from '@/features/landing/steps';
import { ToolCards } from '@/features/landing/tool-cards';

export default function DashboardRoute() {
  return (
    <>
      <title>Retouch · AI Image Editing Made Simple</title>
      <Hero />
      <ToolCards />
      <Steps />
      <Closing />
    </>
  );
}
