import { useMutation } from '@tanstack/react-query';
import { useEffect, useRef } from 'react';
import { useNavigate } from 'react-router';
import { api, unwrap } from '@/lib/api-client';
import { notifySuccess } from '@/lib/notify';
import { paths } from '@/lib/paths';
import { useSession } from '@/lib/session';
import { accountTexts } from './texts';

/** Deletes the account, and leaves this browser signed out at the first page. */
export function useDeleteAccount() {
  const navigate = useNavigate();
  const { forget } = useSession();
  const afterLeaving = useRef(() => {});

  useEffect(() => () => afterLeaving.current(), []);

  return useMutation({
    mutationFn: async () => unwrap(await api.DELETE('/api/user')),
    onSuccess: () => {
      // Not before this page is left: whoever is signed out on it is led to /login.
      afterLeaving.current = () => {
        void forget();
        notifySuccess(accountTexts.deleted);
      };
      void navigate(paths.root, { replace: true });
    },
  });
}
