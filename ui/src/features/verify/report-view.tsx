import type { Verification } from '@/lib/api-types';
import { t } from '@/lib/translate';
import { ClaimView } from './claim-view';
import { ProblemList } from './problem-list';
import { SourceText } from './source-text';
import { VerdictBox } from './verdict';

/** The marks of a picture, and whether they are trustworthy. */
export function ReportView({ report }: { report: Verification }) {
  const { source, isSourceClaimed, state, claim, problems } = report;
  return (
    <div className="grid gap-4">
      <VerdictBox report={report} />
      {(source || claim || problems.length > 0) && (
        <div className="grid min-w-0 gap-5 rounded-lg border border-line bg-surface p-4 md:p-6">
          <ProblemList problems={problems} />
          {source && (
            <div>
              <h3 className="text-sm text-soft">{t('Where the picture comes from')}</h3>
              <p className="text-lg font-semibold">
                <SourceText uri={source} />
              </p>
              <p className="text-sm text-soft">
                {!isSourceClaimed
                  ? t('Only the file’s XMP metadata says so. It is not signed, so anybody can change it.')
                  : state === 'invalid'
                    ? t('The credentials say so, but they are not valid.')
                    : t('The signed credentials say so.')}
              </p>
            </div>
          )}
          {claim && <ClaimView claim={claim} isSound={state !== 'invalid'} />}
        </div>
      )}
    </div>
  );
}
