import { Button } from '@/components/button';
import { ButtonLink } from '@/components/button-link';
import type { Pack } from '@/lib/api-types';
import { classNames } from '@/lib/class-names';
import { useConfig } from '@/lib/env';
import { formatMoney } from '@/lib/format';
import { paths } from '@/lib/paths';
import { useSession } from '@/lib/session';

type PackCardProps = { pack: Pack; isHighlighted: boolean; explanation: string };

export function PackCard({ pack, isHighlighted, explanation }: PackCardProps) {
  const { isSignedIn } = useSession();
  const { features, newUserCredits } = useConfig();
  const each = formatMoney(Math.round((pack.amount / pack.credits) * 10) / 10, pack.currency);

  return (
    <li
      className={classNames(
        'flex flex-col rounded-lg border bg-surface p-6 md:p-8',
        isHighlighted ? 'border-accent shadow-raised ring-1 ring-accent' : 'border-line',
      )}
    >
      <div className="flex min-h-7 flex-wrap items-center justify-between gap-2">
        <h2 className="text-base font-semibold">{pack.label}</h2>
        {pack.note && (
          <span className="rounded-full bg-accent-wash px-3 py-1 text-xs font-semibold text-accent">
            {pack.note}
          </span>
        )}
      </div>
      <p className="mt-6 flex items-baseline gap-2">
        <span className="text-3xl font-bold tracking-tight tabular-nums">
          {formatMoney(pack.amount, pack.currency)}
        </span>
      </p>
      <p className="mt-2 text-lg">
        <strong>{pack.credits} credits</strong>
        <span className="ml-2 text-sm text-soft">about {each} each</span>
      </p>
      <div className="mt-8 grid gap-2">
        {isSignedIn ? (
          <Button
            look={isHighlighted ? 'primary' : 'secondary'}
            disabled={!features.payments}
            aria-describedby={features.payments ? undefined : explanation}
          >
            Choose
          </Button>
        ) : (
          <>
            <ButtonLink to={paths.signup} look={isHighlighted ? 'primary' : 'secondary'}>
              Try for free
            </ButtonLink>
            <p className="text-center text-xs text-soft">Starts with {newUserCredits} free credits</p>
          </>
        )}
      </div>
    </li>
  );
}
