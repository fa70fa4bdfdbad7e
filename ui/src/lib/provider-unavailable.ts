/** The identity provider renews no token at the moment, for example because it restarts or the phone has just woken up. */
export class ProviderUnavailable extends Error {}
