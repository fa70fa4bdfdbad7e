import { ButtonLink } from '@/components/button-link';
import { Tooltip } from '@/components/tooltip';
import { credits } from '@/lib/format';
import { paths } from '@/lib/paths';
import { formatNumber, t } from '@/lib/translate';
import { useUser } from './get-user';

export function CreditsButton() {
  const { data: user } = useUser();
  return (
    <Tooltip
      align="end"
      text={
        user?.reserved
          ? t('{credits} held for runs in progress', { credits: credits(user.reserved) })
          : undefined
      }
    >
      {(describedBy) => (
        <ButtonLink
          to={paths.pricing}
          variant="secondary"
          size="sm"
          className="min-w-26 tabular-nums"
          aria-describedby={describedBy}
        >
          {t('credits {count}', { count: user ? formatNumber(user.credits) : '–' })}
        </ButtonLink>
      )}
    </Tooltip>
  );
}
