import { useLocation } from 'react-router';
import { ButtonLink } from '@/components/button-link';
import { CenteredPage } from '@/components/centered-page';
import { Icon, type IconName } from '@/components/icon';
import { useConfig } from '@/lib/env';
import { paths } from '@/lib/paths';
import { useSession } from '@/lib/session';

const tools: { to: string; icon: IconName; label: string }[] = [
  { to: paths.removeBackground, icon: 'cutout', label: 'Remove Background' },
  { to: paths.upscale, icon: 'upscale', label: 'Upscale' },
  { to: paths.magic, icon: 'magic', label: 'Magic Fix' },
];

export default function NotFoundRoute() {
  const { pathname } = useLocation();
  const { isSignedIn } = useSession();
  const address = useConfig().site.contactEmail;
  const links = isSignedIn
    ? [...tools, { to: paths.images, icon: 'image' as const, label: 'My Images' }]
    : tools;

  return (
    <CenteredPage title="This page does not exist">
      <p>
        There is nothing at <code className="font-semibold break-all text-ink">{pathname}</code>. You may have
        mistyped the address, or the page has been deleted.
      </p>
      <ButtonLink to={paths.dashboard}>Go to the dashboard</ButtonLink>
      <nav aria-label="Where to go from here" className="w-full border-t border-line pt-6">
        <ul className="flex flex-wrap justify-center gap-1">
          {links.map(({ to, icon, label }) => (
            <li key={to}>
              <ButtonLink to={to} variant="quiet" size="sm">
                <span className="text-accent">
                  <Icon name={icon} />
                </span>
                {label}
              </ButtonLink>
            </li>
          ))}
        </ul>
      </nav>
      {address && (
        <p className="text-sm">
          Did one of our links lead here?{' '}
          <a className="text-accent underline underline-offset-4" href={`mailto:${address}`}>
            Tell us
          </a>
          .
        </p>
      )}
    </CenteredPage>
  );
}
