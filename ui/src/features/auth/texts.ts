import type { Provider } from '@/lib/identity-client';
import { msg, t } from '@/lib/translate';

export const authTexts = {
  loginFailed: msg('Login Failed'),
  unreachable: msg('We can’t reach the sign-in service. Please try again later.'),
};

const storageBlocked = msg(
  'Your browser blocks site data, which the sign-in needs. Allow cookies for this site and try again.',
);

/** Why a sign-in could not begin. */
export const signInFailure = (error: unknown) =>
  t(error instanceof DOMException && error.name === 'SecurityError' ? storageBlocked : authTexts.unreachable);

export const brands: Record<Exclude<Provider, 'password'>, string> = {
  google: 'Google',
  facebook: 'Facebook',
};

export const byPassword = msg('Username and Password');
