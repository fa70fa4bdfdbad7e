import type { Verification } from '@/lib/api-types';
import { t } from '@/lib/translate';
import { ForeignText } from './foreign-text';
import { problemText } from './problem-texts';

/** The problems of a manifest: explanations with their status codes. */
export function ProblemList({ problems }: { problems: Verification['problems'] }) {
  if (problems.length === 0) return null;
  return (
    <ul aria-label={t('Problems')} className="grid gap-2 text-sm">
      {problems.map(({ code, explanation }, index) => {
        const known = problemText(code);
        return (
          // biome-ignore lint/suspicious/noArrayIndexKey: the same problem can occur twice.
          <li key={index} className="min-w-0">
            <p className="text-danger">
              {known ? t(known) : <ForeignText text={explanation ?? t('Another problem.')} />}
            </p>
            <p className="text-xs text-soft">
              <code>
                <ForeignText text={code} />
              </code>
            </p>
          </li>
        );
      })}
    </ul>
  );
}
