import { ButtonLink } from '@/components/button-link';
import { useConfig } from '@/lib/env';
import { paths } from '@/lib/paths';
import { useSession } from '@/lib/session';
import { plural, t } from '@/lib/translate';

export function Closing() {
  const { isSignedIn } = useSession();
  const { newUserCredits } = useConfig();
  return (
    <section className="page pt-12 pb-4 text-center md:pt-20 md:pb-8">
      <h2 className="text-xl font-bold md:text-2xl">{t('Start Processing Images With AI')}</h2>
      <p className="mx-auto mt-3 max-w-xl text-soft">
        {isSignedIn
          ? t('We keep your images until you delete them, and only you can see them.')
          : plural(newUserCredits, {
              one: 'Your first credit is free. We keep your images until you delete them, and only you can see them.',
              other:
                'Your first # credits are free. We keep your images until you delete them, and only you can see them.',
            })}
      </p>
      {/* The sign-up page would sign out a signed-in user. */}
      <ButtonLink to={isSignedIn ? paths.images : paths.signup} size="lg" className="mt-8">
        {t('Start now')}
      </ButtonLink>
    </section>
  );
}
