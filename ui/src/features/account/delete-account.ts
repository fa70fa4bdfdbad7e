import { useMutation } from '@tanstack/react-query';
import { useEffect, useRef } from 'react';
import { useNavigate } from 'react-router';
import { api, unwrap } from '@/lib/api-client';
import { notifySuccess } from '@/lib/notify';
import { paths } from '@/lib/paths';
import { useSession } from '@/lib/session';
import { t } from '@/lib/translate';
import { accountTexts } from './texts';

/** Deletes the account, then signs out and shows the landing page. */
export function useDeleteAccount() {
  const navigate = useNavigate();
  const { signOutLocally } = useSession();
  const onUnmount = useRef(() => {});

  useEffect(() => () => onUnmount.current(), []);

  return useMutation({
    mutationFn: async () => unwrap(await api.DELETE('/api/user')),
    onSuccess: () => {
      // Only after this page is left: it redirects signed-out users to /login.
      onUnmount.current = () => {
        signOutLocally();
        notifySuccess(t(accountTexts.deleted));
      };
      void navigate(paths.root, { replace: true });
    },
  });
}
