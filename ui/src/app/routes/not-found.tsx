import { ButtonLink } from '@/components/button-link';
import { CenteredPage } from '@/components/centered-page';
import { paths } from '@/lib/paths';

export default function NotFoundRoute() {
  return (
    <CenteredPage title="This page does not exist">
      <p>The address may be mistyped, or what was here has been deleted.</p>
      <ButtonLink to={paths.dashboard}>Go to the dashboard</ButtonLink>
    </CenteredPage>
  );
}
