import { msg } from '@/lib/translate';

export const checkoutTexts = {
  listFailedToast: msg('Failed to load checkouts'),
  listFailed: msg('We could not load your orders. Please try again later.'),
  oneFailedToast: msg('Failed to load checkout'),
  oneFailed: msg('We could not load this order. Please try again later.'),
  notCompleted: msg('Not completed'),
  notFound: msg('This order does not exist, or it belongs to another account.'),
  paymentFailed: msg(
    'We could not check your payment. It is not lost: a paid order always gets its credits.',
  ),
};
