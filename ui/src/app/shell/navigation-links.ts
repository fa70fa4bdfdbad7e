import { paths } from '@/lib/paths';
import { msg } from '@/lib/translate';

export const publicLinks = [
  { to: paths.dashboard, label: msg('Dashboard') },
  { to: paths.pricing, label: msg('Pricing') },
  { to: paths.removeBackground, label: msg('Remove Background') },
  { to: paths.upscale, label: msg('Upscale') },
  { to: paths.magic, label: msg('Magic Fix') },
];

export const ownLinks = [{ to: paths.images, label: msg('My Images') }];

/** The links of the account menu. */
export const menuLinks = [
  { to: paths.checkouts, label: msg('Checkouts') },
  { to: paths.account, label: msg('Account') },
];
