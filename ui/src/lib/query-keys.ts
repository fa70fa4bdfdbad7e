// The kinds of cached data, besides the active jobs below.
export const queryKeys = {
  user: ['user'] as const,
  userImages: ['user-images'] as const,
  userImage: (imageId: string) => ['user-image', imageId] as const,
  rmbgImages: (imageId: string) => ['rmbg-images', imageId] as const,
  upscaledImages: (imageId: string) => ['upscaled-images', imageId] as const,
  magicImages: (imageId: string) => ['magic-images', imageId] as const,
  checkouts: ['checkouts'] as const,
};

/** One order. Nested under the list's key, so that invalidating the list includes it. */
export function checkoutKey(checkoutId: string) {
  return [...queryKeys.checkouts, checkoutId] as const;
}

/** The status of one session at the payment provider. */
export function paymentKey(sessionId: string) {
  return [...queryKeys.checkouts, 'payment', sessionId] as const;
}

export const apiKeysKey = [...queryKeys.user, 'api-keys'] as const;

export const webhooksKey = [...queryKeys.user, 'webhooks'] as const;

/** The last deliveries of a webhook. */
export const deliveriesKey = (webhookId: string) => [...webhooksKey, webhookId, 'deliveries'] as const;

export const storageKey = [...queryKeys.user, 'storage'] as const;

/** The user's queued and running jobs on all images. */
export const activeJobsKey = ['active-jobs'] as const;
