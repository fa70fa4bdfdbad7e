export const checkoutTexts = {
  listFailedToast: 'Failed to load checkouts',
  listFailed: 'We could not load your orders. Please try again later.',
  oneFailedToast: 'Failed to load checkout',
  oneFailed: 'We could not load this order. Please try again later.',
  notCompleted: 'Not completed',
  notFound: 'This order does not exist, or it belongs to another account.',
  paymentFailed: 'We could not check your payment. It is not lost: a paid order always gets its credits.',
};
