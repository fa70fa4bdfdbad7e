import { HttpResponse } from 'msw';

/** What a hotel's network answers to every request until somebody signs in to it. */
export const aSignInPage = () => HttpResponse.html('<!doctype html><title>Welcome</title>');
