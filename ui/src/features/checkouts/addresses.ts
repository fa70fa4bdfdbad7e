import { paths } from '@/lib/paths';

/** An order. */
export const checkoutOf = (id: string) => `${paths.checkouts}/${id}`;

/** Where an open payment is gone on with. */
export const paymentOf = (session: string) => `${paths.payment}?session_id=${encodeURIComponent(session)}`;

/** Where a payment is thanked for. */
export const paidOf = (session: string) => `${paths.paid}?session_id=${encodeURIComponent(session)}`;
