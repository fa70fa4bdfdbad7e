import type { Provider } from '@/lib/session';

export const authTexts = {
  loginFailed: 'Login Failed',
  unreachable: 'We can’t reach the sign-in service. Please try again later.',
};

export const providerNames: Record<Provider, string> = {
  google: 'Google',
  facebook: 'Facebook',
  password: 'Username and Password',
};
