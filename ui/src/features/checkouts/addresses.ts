import { paths } from '@/lib/paths';

/** The page of an order. */
export const checkoutPath = (id: string) => `${paths.checkouts}/${id}`;

/** The page that continues an open payment. */
export const paymentPath = (session: string) => `${paths.payment}?session_id=${encodeURIComponent(session)}`;

/** The page that thanks for a payment. */
export const thanksPath = (session: string) => `${paths.paid}?session_id=${encodeURIComponent(session)}`;
