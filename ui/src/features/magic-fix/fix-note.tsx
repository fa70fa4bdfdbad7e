import { Icon } from '@/components/icon';
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
      {result.prompt && <Prompt text={quoted(result.prompt)} />}
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

/** Letters from which a prompt may take more than two lines. */
const LONG = 60;

/** A long prompt is cut to two lines, which a click unfolds. */
function Prompt({ text }: { text: string }) {
  if (text.length <= LONG) return <p className="font-semibold wrap-anywhere">{text}</p>;
  return (
    <details className="group/prompt">
      <summary className="flex cursor-pointer items-start gap-1 rounded-sm font-semibold">
        <span className="line-clamp-2 wrap-anywhere group-open/prompt:line-clamp-none">{text}</span>
        <Icon
          name="chevron"
          className="mt-1 size-4 shrink-0 text-soft transition-transform group-open/prompt:rotate-180"
        />
      </summary>
    </details>
  );
}
