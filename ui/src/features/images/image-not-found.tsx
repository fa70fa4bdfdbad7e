import { ButtonLink } from '@/components/button-link';
import { CenteredPage } from '@/components/centered-page';
import { imageTexts } from './texts';

export function ImageNotFound({ backTo }: { backTo: string }) {
  return (
    <CenteredPage title={imageTexts.notFound}>
      <p>It may have been deleted, or it belongs to another account.</p>
      <ButtonLink to={backTo}>Choose another image</ButtonLink>
    </CenteredPage>
  );
}
