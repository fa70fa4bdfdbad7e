import type { Provider } from '@/lib/session';

export const authTexts = {
  loginFailed: 'Login Failed',
  unavailable: (name: string) => `Signing in with ${name} is not set up on this server`,
  unreachable: 'The sign-in service cannot be reached. Please try again later.',
};

export const providerNames: Record<Provider, string> = {
  google: 'Google',
  facebook: 'Facebook',
  password: 'Username and Password',
};
