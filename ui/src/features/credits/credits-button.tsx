import { ButtonLink } from '@/components/button-link';
import { Tooltip } from '@/components/tooltip';
import { credits } from '@/lib/format';
import { paths } from '@/lib/paths';
import { useUser } from './get-user';

export function CreditsButton() {
  const { data: user } = useUser();
  return (
    <Tooltip
      align="end"
      text={user?.reserved ? `${credits(user.reserved)} held for runs in progress` : undefined}
    >
      {(describedBy) => (
        <ButtonLink
          to={paths.pricing}
          variant="secondary"
          size="sm"
          className="min-w-26 tabular-nums"
          aria-describedby={describedBy}
        >
          {`credits ${user?.credits ?? '–'}`}
        </ButtonLink>
      )}
    </Tooltip>
  );
}
