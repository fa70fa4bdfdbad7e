import { useConfig } from '@/lib/env';

/** The contact address, as in the footer. */
export function Contact() {
  const address = useConfig().site.contactEmail;
  return address ? <a href={`mailto:${address}`}>{address}</a> : 'the company that runs this service';
}
