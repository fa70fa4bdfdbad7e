import { ButtonLink } from '@/components/button-link';
import { Icon } from '@/components/icon';
import { useConfig } from '@/lib/env';
import { paths } from '@/lib/paths';
import { useSession } from '@/lib/session';
import { plural, t } from '@/lib/translate';
import { Preview } from './preview';
import { tools } from './texts';

export function Hero() {
  return (
    <section className="border-b border-line bg-surface">
      <div className="page grid items-center gap-x-12 gap-y-10 py-10 md:py-16 lg:grid-cols-[5fr_6fr]">
        <div className="min-w-0">
          <h1 className="text-2xl font-bold md:text-3xl">{t('AI Image Editing Made Simple')}</h1>
          <p className="mt-4 max-w-xl text-lg text-soft">
            {t('Clean cutouts, larger images and repaired details, by AI models that run on this server.')}
          </p>
          {/* Reserves the space while the session loads, so that nothing below shifts. */}
          <div className="mt-8 grid min-h-12 content-start">
            <Invitation />
          </div>
          <ul className="mt-8 grid grid-cols-3 gap-2 border-t border-line pt-6 sm:flex sm:flex-wrap">
            {tools.map(({ to, icon, action }) => (
              <li key={to}>
                <ButtonLink
                  to={to}
                  variant="quiet"
                  // On a phone the name is below the icon and may wrap.
                  className="max-sm:w-full max-sm:flex-col max-sm:px-1 max-sm:whitespace-normal sm:-ml-4"
                >
                  <span className="text-accent">
                    <Icon name={icon} />
                  </span>
                  {t(action)}
                </ButtonLink>
              </li>
            ))}
          </ul>
        </div>
        <Preview />
      </div>
    </section>
  );
}

function Invitation() {
  const { isLoading, isSignedIn } = useSession();
  const { newUserCredits } = useConfig();
  if (isLoading) return null;
  if (isSignedIn) {
    return (
      <ButtonLink to={paths.images} size="lg" className="justify-self-start">
        {t('Go to My Images')}
      </ButtonLink>
    );
  }
  return (
    <div className="flex flex-wrap items-center gap-x-5 gap-y-3">
      <ButtonLink to={paths.signup} size="lg">
        {t('Try for free')}
      </ButtonLink>
      <p className="text-sm text-soft">
        {plural(newUserCredits, {
          one: '# free credit, no card needed',
          other: '# free credits, no card needed',
        })}
      </p>
    </div>
  );
}
