import { useLocation } from 'react-router';
import { ButtonLink } from '@/components/button-link';
import { CenteredPage } from '@/components/centered-page';
import { Icon, type IconName } from '@/components/icon';
import { useConfig } from '@/lib/env';
import { paths } from '@/lib/paths';
import { rich } from '@/lib/rich';
import { useSession } from '@/lib/session';
import { type Message, msg, t } from '@/lib/translate';

const tools: { to: string; icon: IconName; label: Message }[] = [
  { to: paths.removeBackground, icon: 'cutout', label: msg('Remove Background') },
  { to: paths.upscale, icon: 'upscale', label: msg('Upscale') },
  { to: paths.magic, icon: 'magic', label: msg('Magic Fix') },
];

export default function NotFoundRoute() {
  const { pathname } = useLocation();
  const { isSignedIn } = useSession();
  const address = useConfig().site.contactEmail;
  const links = isSignedIn
    ? [...tools, { to: paths.images, icon: 'image' as const, label: msg('My Images') }]
    : tools;

  return (
    <CenteredPage title={t('This page does not exist')}>
      <p>
        {rich(
          'There is nothing at {address}. You may have mistyped the address, or the page has been deleted.',
          { address: <code className="font-semibold break-all text-ink">{pathname}</code> },
        )}
      </p>
      <ButtonLink to={paths.dashboard}>{t('Go to the dashboard')}</ButtonLink>
      <nav aria-label={t('Where to go from here')} className="w-full border-t border-line pt-6">
        <ul className="flex flex-wrap justify-center gap-1">
          {links.map(({ to, icon, label }) => (
            <li key={to}>
              <ButtonLink to={to} variant="quiet" size="sm">
                <span className="text-accent">
                  <Icon name={icon} />
                </span>
                {t(label)}
              </ButtonLink>
            </li>
          ))}
        </ul>
      </nav>
      {address && (
        <p className="text-sm">
          {rich('Did one of our links lead here? <link>Tell us</link>.', {
            link: (text) => (
              <a className="text-accent underline underline-offset-4" href={`mailto:${address}`}>
                {text}
              </a>
            ),
          })}
        </p>
      )}
    </CenteredPage>
  );
}
