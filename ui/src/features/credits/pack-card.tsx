import { useId } from 'react';
import { Button } from '@/components/button';
import { ButtonLink } from '@/components/button-link';
import type { ButtonVariant } from '@/components/button-style';
import { Skeleton } from '@/components/skeleton';
import type { Pack } from '@/lib/api-types';
import { classNames } from '@/lib/class-names';
import { useConfig } from '@/lib/env';
import { credits, formatMoney } from '@/lib/format';
import { paths } from '@/lib/paths';
import { useSession } from '@/lib/session';
import { dataText, plural, t } from '@/lib/translate';

type PackCardProps = { pack: Pack; isHighlighted: boolean; onChoose: () => void };

export function PackCard({ pack, isHighlighted, onChoose }: PackCardProps) {
  const id = useId();
  const each = formatMoney(Math.round((pack.amount / pack.credits) * 10) / 10, pack.currency);

  return (
    <li
      className={classNames(
        // On a tablet each card is a row: three columns would be too narrow.
        'grid gap-6 rounded-lg border bg-surface p-6 sm:max-lg:grid-cols-[1fr_12rem] sm:max-lg:items-center lg:gap-8 lg:p-8',
        isHighlighted ? 'border-accent shadow-raised ring-1 ring-accent' : 'border-line',
      )}
    >
      <div>
        <div className="flex min-h-7 flex-wrap items-center gap-x-3 gap-y-2 max-sm:justify-between lg:justify-between">
          <h2 id={`${id}-label`} className="text-base font-semibold">
            {dataText(pack.label)}
          </h2>
          {pack.note && (
            <span className="rounded-full bg-accent-wash px-3 py-1 text-xs font-semibold text-accent">
              {dataText(pack.note)}
            </span>
          )}
        </div>
        <p className="mt-4 text-3xl font-bold tracking-tight lg:mt-6">
          {formatMoney(pack.amount, pack.currency)}
        </p>
        <p className="mt-2 flex flex-wrap items-baseline gap-x-2 text-lg">
          <strong id={`${id}-credits`}>{credits(pack.credits)}</strong>
          <span className="text-sm text-soft">{t('about {price} each', { price: each })}</span>
        </p>
      </div>
      <div className="grid content-start gap-2">
        <PackAction
          variant={isHighlighted ? 'primary' : 'secondary'}
          description={`${id}-label ${id}-credits`}
          onChoose={onChoose}
        />
      </div>
    </li>
  );
}

type PackActionProps = { variant: ButtonVariant; description: string; onChoose: () => void };

/** Leads visitors to the sign-up and users to the payment. */
function PackAction({ variant, description, onChoose }: PackActionProps) {
  const { isLoading, isSignedIn } = useSession();
  const { features, newUserCredits } = useConfig();

  if (isLoading) return <Skeleton className="h-11" />;
  if (!isSignedIn) {
    return (
      <>
        <ButtonLink to={paths.signup} state={paths.pricing} variant={variant}>
          {t('Try for free')}
        </ButtonLink>
        <p className="text-center text-xs text-soft">
          {plural(newUserCredits, {
            one: 'Starts with # free credit',
            other: 'Starts with # free credits',
          })}
        </p>
      </>
    );
  }
  if (!features.payments) {
    return (
      <p className="grid min-h-11 place-items-center text-center text-sm text-soft">
        {t('Not for sale yet')}
      </p>
    );
  }
  return (
    <Button variant={variant} aria-describedby={description} onClick={onChoose}>
      {t('Choose')}
    </Button>
  );
}
