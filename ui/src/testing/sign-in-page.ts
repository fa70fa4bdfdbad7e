import { HttpResponse } from 'msw';

/** The answer of a hotel's network to every request until the user signs in to it. */
export const aSignInPage = () => HttpResponse.html('<!doctype html><title>Welcome</title>');
