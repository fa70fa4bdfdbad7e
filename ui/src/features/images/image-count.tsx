/** How many images there are, or match the search. Read out when it changes. */
export function ImageCount({ total, search }: { total: number; search: string }) {
  const images = total === 1 ? '1 image' : `${total} images`;
  const matches = total === 1 ? `matches “${search}”` : `match “${search}”`;
  return (
    <p role="status" className="min-w-0 text-sm wrap-anywhere text-soft tabular-nums">
      {total === 0 ? '' : search ? `${images} ${matches}` : images}
    </p>
  );
}
