import { msg } from '@/lib/translate';

export const accountTexts = {
  exportFailed: msg('Failed to export your data, try again later'),
  keysFailedToast: msg('Failed to load API keys'),
  keysFailed: msg('We could not load your API keys. Please try again later.'),
  keyNotCreated: msg('Failed to create the key, try again later'),
  keyNotRevoked: msg('Failed to revoke the key, try again later'),
  storageFailed: msg('Failed to load your storage usage'),
  deleteFailed: msg('Failed to delete your account, try again later'),
  deleted: msg('Your account was deleted'),
};
