import { msg } from '@/lib/translate';

/** What the API says about webhooks, as in `src/languages/server-texts.ts`. */
export const sentences = [
  // api/src/webhooks/address.rs, api/src/usecases/manage_webhooks.rs, core/src/webhooks
  msg('Webhook not found'),
  msg('Delivery not found'),
  msg('Enter a complete address, such as https://example.com/hooks.'),
  msg('The address must begin with https://.'),
  msg('The address must not contain a user name or a password.'),
  msg('The address must use port {0}, or a port above {1}.'),
  msg('This address belongs to a private network. Webhooks can only call public ones.'),
  msg('You already have {0} webhooks. Delete one first.'),
  msg('This webhook is off. Turn it on first.'),
  // api/src/limits/rate_limits
  msg('You can start {0} deliveries per minute. Try again in {1} seconds.'),
  msg('You can start {0} address checks per minute. Try again in {1} seconds.'),
];
