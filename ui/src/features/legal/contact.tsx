import { useConfig } from '@/lib/env';

/** Where to write to, as the footer says it. */
export function Contact() {
  const address = useConfig().site.contactEmail;
  return address ? <a href={`mailto:${address}`}>{address}</a> : 'the company that runs this service';
}
