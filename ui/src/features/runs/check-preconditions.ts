import { useContext } from 'react';
import { UserError } from '@/lib/failure-text';
import { SessionContext } from '@/lib/session';
import { t } from '@/lib/translate';

/** Returns a check to await before a run. It waits for a token that is being renewed. */
export function usePreconditionCheck(imageId: string) {
  const session = useContext(SessionContext);
  return async () => {
    if (!(await session?.token())) throw new UserError(t('Authentication token is missing.'));
    if (!imageId) throw new UserError(t('Image ID is missing.'));
  };
}
