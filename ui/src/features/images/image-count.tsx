import { plural } from '@/lib/translate';

/** How many images there are, or match the search. Read out when it changes. */
export function ImageCount({ total, search }: { total: number; search: string }) {
  return (
    <p role="status" className="min-w-0 text-sm wrap-anywhere text-soft tabular-nums">
      {total === 0
        ? ''
        : search
          ? plural(
              total,
              { one: '# image matches “{search}”', other: '# images match “{search}”' },
              { search },
            )
          : plural(total, { one: '# image', other: '# images' })}
    </p>
  );
}
