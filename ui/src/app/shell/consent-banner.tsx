import { Link } from 'react-router';
import { Button } from '@/components/button';
import { useConsent } from '@/lib/consent';
import { paths } from '@/lib/paths';
import { t } from '@/lib/translate';

/** Does not block the page: without an answer there is no consent. Both answers take one click and look the same. */
export default function ConsentBanner() {
  const decide = useConsent((state) => state.decide);
  return (
    <section
      aria-labelledby="consent-title"
      className="fixed inset-x-4 bottom-(--floor) z-30 mx-auto grid max-w-lg animate-rise gap-4 rounded-lg border border-line bg-surface p-4 shadow-overlay md:p-6"
    >
      <div>
        <h2 id="consent-title" className="font-semibold">
          {t('May we count your sign-up?')}
        </h2>
        <p className="mt-1 text-sm text-soft">
          {t(
            'With your consent, Google learns that an advertisement led to an account here, and sets cookies. We never share your images. You can change your mind in the footer.',
          )}{' '}
          <Link to={paths.privacy} className="font-semibold text-accent underline underline-offset-4">
            {t('Privacy Policy')}
          </Link>
        </p>
      </div>
      <div className="grid grid-cols-2 gap-3">
        <Button variant="secondary" onClick={() => decide('refused')}>
          {t('No')}
        </Button>
        <Button variant="secondary" onClick={() => decide('given')}>
          {t('Yes')}
        </Button>
      </div>
    </section>
  );
}
