import { useMutation } from '@tanstack/react-query';
import { api, unwrap } from '@/lib/api-client';
import { notifyError } from '@/lib/notify';
import { t } from '@/lib/translate';
import { accountTexts } from './texts';

/** Downloads everything stored about the user. */
export function useExportData() {
  return useMutation({
    mutationFn: async () => {
      const data = unwrap(await api.GET('/api/user/export', { parseAs: 'blob' }));
      const { saveFile } = await import('@/lib/download');
      saveFile(data, 'retouch-account.json');
    },
    onError: () => notifyError(t(accountTexts.exportFailed)),
  });
}
