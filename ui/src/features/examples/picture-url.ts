// `no-inline`: the files are cached by the hash in their names; inlined, they would weigh down the script.
const urls = import.meta.glob<string>('./pictures/*.avif', {
  eager: true,
  query: '?no-inline',
  import: 'default',
});

/** The URL of an example's picture; `examples/make.py` makes them all. */
export function pictureUrl(id: string, kind: 'before' | 'after' | 'marked'): string | undefined {
  return urls[`./pictures/${id}-${kind}.avif`];
}
