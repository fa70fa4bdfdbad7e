// With their content's hash in the name they are kept for good; inlined they would weigh on the page.
const addresses = import.meta.glob<string>('@/examples/*.avif', {
  eager: true,
  query: '?no-inline',
  import: 'default',
});

/** Where a picture of an example is, all of which `examples/make.py` makes. */
export function pictureOf(id: string, which: 'before' | 'after' | 'marked'): string | undefined {
  return addresses[`/src/examples/${id}-${which}.avif`];
}
