declare global {
  interface Window {
    gtag?: (command: 'event', name: string, details: Record<string, unknown>) => void;
  }
}

/** Tells the operator's advertising tag, where one is on the page, that somebody signed in. */
export function reportConversion() {
  window.gtag?.('event', 'conversion', { value: 1, currency: 'EUR' });
}
