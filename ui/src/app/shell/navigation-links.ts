import { paths } from '@/lib/paths';

export const publicLinks = [
  { to: paths.dashboard, label: 'Dashboard' },
  { to: paths.pricing, label: 'Pricing' },
  { to: paths.removeBackground, label: 'Remove Background' },
  { to: paths.upscale, label: 'Upscale' },
  { to: paths.magic, label: 'Magic Fix' },
];

export const ownLinks = [{ to: paths.images, label: 'My Images' }];

/** The links of the account menu. */
export const menuLinks = [
  { to: paths.checkouts, label: 'Checkouts' },
  { to: paths.account, label: 'Account' },
];
