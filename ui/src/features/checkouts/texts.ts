export const checkoutTexts = {
  listFailedToast: 'Failed to load checkouts',
  listFailed: 'Your orders could not be loaded. Please try again later.',
  oneFailedToast: 'Failed to load checkout',
  oneFailed: 'This order could not be loaded. Please try again later.',
  notFound: 'There is no such order, or it belongs to another account.',
  paymentFailed: 'Your payment could not be checked. It is not lost: an order that is paid gets its credits.',
};
