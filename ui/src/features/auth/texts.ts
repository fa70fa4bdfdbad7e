import type { Provider } from '@/lib/session';

export const authTexts = {
  loginFailed: 'Login Failed',
  unavailable: (name: string) => `Signing in with ${name} is not set up on this server`,
  unreachable: 'We can’t reach the sign-in service. Please try again later.',
};

export const providerNames: Record<Provider, string> = {
  google: 'Google',
  facebook: 'Facebook',
  password: 'Username and Password',
};
