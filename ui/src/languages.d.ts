/** A catalogue, which `plugins/catalogues.ts` compiles. */
declare module '*.po' {
  const catalogue: import('@/lib/translate').Catalogue;
  export default catalogue;
}
