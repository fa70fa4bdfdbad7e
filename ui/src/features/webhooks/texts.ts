import type { Delivery, EventType } from '@/lib/api-types';
import { type Message, msg } from '@/lib/translate';

export const webhookTexts = {
  loadFailedToast: msg('Failed to load webhooks'),
  loadFailed: msg('We could not load your webhooks. Please try again later.'),
  notSaved: msg('Failed to save the webhook, try again later'),
  notDeleted: msg('Failed to delete the webhook, try again later'),
  notRotated: msg('Failed to replace the secret, try again later'),
  notSent: msg('Failed to send it, try again later'),
  deliveriesFailedToast: msg('Failed to load deliveries'),
  deliveriesFailed: msg('We could not load the deliveries. Please try again later.'),
};

export const eventTexts: Record<EventType, Message> = {
  'job.done': msg('A run is done'),
  'job.failed': msg('A run failed'),
  'job.canceled': msg('A run was canceled'),
  'credits.low': msg('Credits are low'),
  'webhook.test': msg('Test'),
};

/** Why the last attempt failed, where its status does not say it. */
export const problemTexts: Record<NonNullable<Delivery['problem']>, Message> = {
  address: msg('The address is on a private network'),
  dns: msg('The host name was not found'),
  connection: msg('No connection'),
  tls: msg('The certificate was not accepted'),
  timeout: msg('No answer within 15 seconds'),
  redirect: msg('Redirects are not followed'),
  status: msg('The answer was an error'),
  off: msg('The webhook was turned off'),
};
