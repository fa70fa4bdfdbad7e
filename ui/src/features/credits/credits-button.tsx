import { ButtonLink } from '@/components/button-link';
import { credits } from '@/lib/format';
import { paths } from '@/lib/paths';
import { useUser } from './get-user';

export function CreditsButton() {
  const { data: user } = useUser();
  return (
    <ButtonLink
      to={paths.pricing}
      look="secondary"
      size="sm"
      className="min-w-26 tabular-nums"
      title={user?.reserved ? `${credits(user.reserved)} held for running jobs` : undefined}
    >
      {`credits ${user?.credits ?? '–'}`}
    </ButtonLink>
  );
}
