import type { Result } from '@/lib/api-types';
import { quoted } from '@/lib/format';
import { type Message, msg, t } from '@/lib/translate';

const verbs: Record<NonNullable<Result['mode']>, Message> = {
  edit: msg('Edited'),
  restore: msg('Restored'),
  remove: msg('Removed'),
  enhance: msg('Enhanced'),
  add: msg('Added'),
};

/** The prompt of a fix and the mode it was run in. */
export function FixNote({ result }: { result: Result }) {
  return (
    <div className="mt-3 grid gap-1">
      {result.prompt && <p className="font-semibold">{quoted(result.prompt)}</p>}
      <p className="flex flex-wrap items-center gap-x-3 gap-y-1 text-sm text-soft">
        {result.mode && t(verbs[result.mode])}
        {result.demo && (
          <span className="rounded-full bg-warning-wash px-2 py-0.5 text-xs font-bold text-warning">
            {t('Demo model')}
          </span>
        )}
      </p>
    </div>
  );
}
