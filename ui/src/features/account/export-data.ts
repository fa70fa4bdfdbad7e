import { useMutation } from '@tanstack/react-query';
import { api, unwrap } from '@/lib/api-client';
import { loadWithRetry } from '@/lib/load-with-retry';
import { notifyError } from '@/lib/notify';
import { t } from '@/lib/translate';
import { accountTexts } from './texts';

const loadDownload = () => import('@/lib/download');

/** Downloads everything stored about the user. */
export function useExportData() {
  return useMutation({
    mutationFn: async () => {
      const data = unwrap(await api.GET('/api/user/export', { parseAs: 'blob' }));
      const { saveFile } = await loadWithRetry(loadDownload);
      saveFile(data, 'retouch-account.json');
    },
    onError: () => notifyError(t(accountTexts.exportFailed)),
  });
}
