export const accountTexts = {
  exportFailed: 'Failed to export your data, try again later',
  keysFailedToast: 'Failed to load API keys',
  keysFailed: 'We could not load your API keys. Please try again later.',
  keyNotCreated: 'Failed to create the key, try again later',
  keyNotRevoked: 'Failed to revoke the key, try again later',
  storageFailed: 'Failed to load how much you store',
  deleteFailed: 'Failed to delete your account, try again later',
  deleted: 'Your account was deleted',
};
