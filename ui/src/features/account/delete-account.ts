import { useMutation } from '@tanstack/react-query';
import { useEffect, useRef } from 'react';
import { useNavigate } from 'react-router';
import { api, unwrap } from '@/lib/api-client';
import { notifySuccess } from '@/lib/notify';
import { paths } from '@/lib/paths';
import { useSession } from '@/lib/session';
import { forgetAccount, forgetSignIn } from '@/lib/stored-user';
import { t } from '@/lib/translate';
import { accountTexts } from './texts';

/** Deletes the account, then signs out and shows the landing page. */
export function useDeleteAccount() {
  const navigate = useNavigate();
  const { userId, signOutLocally } = useSession();
  const onUnmount = useRef(() => {});

  useEffect(() => () => onUnmount.current(), []);

  return useMutation({
    mutationFn: async () => {
      // A call between the deletion and its answer must not start another account.
      forgetSignIn();
      unwrap(await api.DELETE('/api/user'));
      if (userId) forgetAccount(userId);
    },
    onSuccess: () => {
      // Only after this page is left: it redirects signed-out users to /login.
      onUnmount.current = signOutLocally;
      void navigate(paths.root, { replace: true });
      // Not on leaving: the page may be gone already, because the API has refused the old token before it answered.
      notifySuccess(t(accountTexts.deleted));
    },
  });
}
