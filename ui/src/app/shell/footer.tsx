import { Link } from 'react-router';
import { useConsent, useNeedsConsent } from '@/lib/consent';
import { useConfig } from '@/lib/env';
import { paths } from '@/lib/paths';
import { t } from '@/lib/translate';
import { LanguageSelect } from './language-select';
import { ThemeToggle } from './theme-toggle';

const link =
  'inline-flex min-h-11 items-center px-3 rounded-md underline-offset-4 hover:text-ink hover:underline';

export function Footer() {
  const { contactEmail: address, operatorName, operatorAddress } = useConfig().site;
  const needsConsent = useNeedsConsent();
  const decide = useConsent((state) => state.decide);
  return (
    <footer className="mt-16 border-t border-line">
      <div className="page flex flex-wrap items-center justify-between gap-x-8 gap-y-2 py-6 text-sm text-soft">
        <div className="grid gap-1">
          <p>
            {t(
              'Retouch edits your images on this server. Images of your account stay here until you delete them.',
            )}
          </p>
          {operatorName && (
            <p>
              {t('Run by {operator}', {
                operator: [operatorName, ...(operatorAddress?.split('\n') ?? [])].join(', '),
              })}
            </p>
          )}
        </div>
        <div className="-mx-3 grid grid-cols-2 items-center gap-x-1 max-[22rem]:grid-cols-1 sm:grid-cols-3 lg:flex lg:flex-wrap">
          <LanguageSelect />
          <ThemeToggle />
          <Link to={paths.verify} className={link}>
            {t('Verify a picture')}
          </Link>
          <Link to={paths.privacy} className={link}>
            {t('Privacy Policy')}
          </Link>
          <Link to={paths.terms} className={link}>
            {t('Terms of Service')}
          </Link>
          {address && (
            <a href={`mailto:${address}`} className={link}>
              {t('Contact')}
            </a>
          )}
          {needsConsent && (
            <button type="button" className={link} onClick={() => decide('undecided')}>
              {t('Cookies')}
            </button>
          )}
        </div>
      </div>
    </footer>
  );
}
