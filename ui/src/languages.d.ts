/** A catalogue, which `plugins/catalogues.ts` compiles: its first texts. */
declare module '*.po' {
  const catalogue: import('@/lib/translate').Catalogue;
  export default catalogue;
}

/** Its later texts. */
declare module '*.po?later' {
  const catalogue: import('@/lib/translate').Catalogue;
  export default catalogue;
}
