import type { ResultItem } from '@/lib/api-types';

const verbs: Record<NonNullable<ResultItem['mode']>, string> = {
  edit: 'Edited',
  restore: 'Restored',
  remove: 'Removed',
  enhance: 'Enhanced',
  add: 'Added',
};

/** The prompt of a fix, the mode it was run in, and the model. */
export function FixNote({ result }: { result: ResultItem }) {
  const facts = [result.mode && verbs[result.mode], result.model].filter(Boolean).join(' · ');
  return (
    <div className="mt-3 grid gap-1">
      {result.prompt && <p className="font-semibold">{`“${result.prompt}”`}</p>}
      <p className="flex flex-wrap items-center gap-x-3 gap-y-1 text-sm text-soft">
        {facts}
        {result.demo && (
          <span className="rounded-full bg-warning-wash px-2 py-0.5 text-xs font-bold text-warning">
            Demo model
          </span>
        )}
      </p>
    </div>
  );
}
