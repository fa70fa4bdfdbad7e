// The seven kinds of data the page caches.
export const queryKeys = {
  user: ['user'] as const,
  userImages: ['user-images'] as const,
  userImage: (imageId: string) => ['user-image', imageId] as const,
  rmbgImages: (imageId: string) => ['rmbg-images', imageId] as const,
  upscaledImages: (imageId: string) => ['upscaled-images', imageId] as const,
  magicImages: (imageId: string) => ['magic-images', imageId] as const,
  checkouts: ['checkouts'] as const,
};

/** One order; under the list's key, so that news of an order reaches both. */
export function checkoutKey(checkoutId: string) {
  return [...queryKeys.checkouts, checkoutId] as const;
}

/** How the payment on one page of the payment provider stands. */
export function paymentKey(sessionId: string) {
  return [...queryKeys.checkouts, 'payment', sessionId] as const;
}

/** The keys with which programs act for the user. */
export const apiKeysKey = [...queryKeys.user, 'api-keys'] as const;

/** Everything of the user's that waits or runs, on any image. */
export const runningKey = ['running'] as const;

/** The active jobs of an image's result list; under its key, so that both are dropped together. */
export function jobsKey(resultsKey: readonly unknown[]) {
  return [...resultsKey, 'jobs'] as const;
}
