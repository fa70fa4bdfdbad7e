import { useRef } from 'react';
import { Link } from 'react-router';
import { ConfirmButton } from '@/components/confirm-button';
import { LoadFailure } from '@/components/load-failure';
import { SkeletonGrid } from '@/components/skeleton-grid';
import type { Tool } from '@/features/catalog/tool';
import { quoted } from '@/lib/format';
import { t } from '@/lib/translate';
import { useDeleteResult } from './delete-result';
import { FactorBadge } from './factor-badge';
import { useResults } from './get-results';
import { ResultThumbnail } from './result-thumbnail';

const grid = 'grid grid-cols-3 gap-3 sm:grid-cols-5 lg:grid-cols-8 xl:grid-cols-10';

/** All results of one tool, each with a Delete button. */
export function ResultSection({ tool, imageId }: { tool: Tool; imageId: string }) {
  const { data: results, isPending, isFetching, refetch } = useResults(tool, imageId);
  const heading = useRef<HTMLHeadingElement>(null);
  const remove = useDeleteResult(tool, imageId, () => heading.current?.focus());
  const title = t(tool.texts.section);

  return (
    <section>
      <h2 ref={heading} tabIndex={-1} className="mb-4 text-lg font-semibold outline-none">
        {title}
      </h2>
      {isPending ? (
        <SkeletonGrid className={grid} count={3} label={t('Loading results')} hasButton />
      ) : !results ? (
        <LoadFailure text={t(tool.texts.listFailed)} isTrying={isFetching} onTryAgain={refetch} />
      ) : results.length === 0 ? (
        <p className="rounded-md border border-line bg-surface px-4 py-6 text-center text-sm text-soft">
          {t('No Images to Show')}
        </p>
      ) : (
        <ul className={grid}>
          {results.map((result, index) => (
            <li key={result.imageId} className="grid gap-2">
              <div className="relative">
                <Link
                  to={`${tool.pagePath}/${imageId}`}
                  state={{ resultId: result.imageId }}
                  className="grid aspect-square place-items-center overflow-hidden rounded-md border border-line bg-sunken hover:ring-2 hover:ring-control"
                >
                  <ResultThumbnail
                    result={result}
                    alt={t('{title}, result {index}', { title, index: index + 1 })}
                  />
                </Link>
                {result.factor && (
                  <span className="pointer-events-none absolute top-1 right-1">
                    <FactorBadge factor={result.factor} />
                  </span>
                )}
              </div>
              {result.prompt && (
                <p className="truncate text-xs text-soft" title={result.prompt}>
                  {quoted(result.prompt)}
                </p>
              )}
              <ConfirmButton
                variant="danger"
                size="sm"
                className="px-1!"
                isBusy={remove.isPending && remove.variables === result.imageId}
                aria-label={t('DELETE {title}, result {index}', { title, index: index + 1 })}
                question={{
                  title: t('Delete this result?'),
                  text: t('This deletes it from the server for good. The original image stays.'),
                  action: t('Delete'),
                  onConfirm: () => remove.mutate(result.imageId),
                }}
              >
                {t('DELETE')}
              </ConfirmButton>
            </li>
          ))}
        </ul>
      )}
    </section>
  );
}
