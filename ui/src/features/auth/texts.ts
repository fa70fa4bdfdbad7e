import type { Provider } from '@/lib/session';
import { msg } from '@/lib/translate';

export const authTexts = {
  loginFailed: msg('Login Failed'),
  unreachable: msg('We can’t reach the sign-in service. Please try again later.'),
};

export const brands: Record<Exclude<Provider, 'password'>, string> = {
  google: 'Google',
  facebook: 'Facebook',
};

export const byPassword = msg('Username and Password');
