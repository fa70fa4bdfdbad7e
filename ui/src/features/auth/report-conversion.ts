import type { AdTag } from '@/lib/api-types';

declare global {
  interface Window {
    dataLayer?: unknown[];
  }
}

const SCRIPT = 'https://www.googletagmanager.com/gtag/js';

/** Reports a sign-in to the operator's advertising account. Call only with the user's consent. */
export function reportConversion({ id, conversion }: AdTag) {
  window.dataLayer ??= [];
  const commands = window.dataLayer;
  // The tag reads `arguments` objects; an array would be ignored.
  function tag(..._: unknown[]) {
    // biome-ignore lint/complexity/noArguments: see above.
    commands.push(arguments);
  }
  if (!document.querySelector(`script[src^="${SCRIPT}"]`)) {
    const script = document.createElement('script');
    script.async = true;
    script.src = `${SCRIPT}?id=${encodeURIComponent(id)}`;
    document.head.append(script);
    tag('js', new Date());
    tag('config', id);
  }
  tag('event', 'conversion', { send_to: conversion, value: 1, currency: 'EUR' });
}
