import { type KeyboardEvent, type ReactNode, Suspense, useMemo, useRef } from 'react';
import { EmptyState } from '@/components/empty-state';
import { lazyWithRetry } from '@/components/lazy-with-retry';
import { LoadFailure } from '@/components/load-failure';
import { SkeletonGrid } from '@/components/skeleton-grid';
import type { Image } from '@/lib/api-types';
import { classNames } from '@/lib/class-names';
import { t } from '@/lib/translate';
import { useDeleteImages } from './delete-images';
import { useImages } from './get-images';
import { moveInGrid } from './grid-keys';
import { ImageCard } from './image-card';
import { ImageCount } from './image-count';
import type { ImageFilter } from './image-filter';
import { ImageSearch } from './image-search';
import { ImageSortSelect } from './image-sort';
import { MoreImages } from './more-images';
import { NoHits } from './no-hits';
import { imageTexts } from './texts';
import { useDownloadImages } from './use-download-images';
import { useEscape } from './use-escape';
import { useSelection } from './use-selection';

const grid = 'grid grid-cols-2 gap-x-4 gap-y-6 sm:grid-cols-3 md:grid-cols-4 lg:grid-cols-6 xl:grid-cols-8';
const none: Image[] = [];

const SelectionTools = lazyWithRetry(() => import('./selection-tools'));

type ImageGridProps = {
  filter: ImageFilter;
  onFilter: (change: Partial<ImageFilter>) => void;
  /** Adds an overlay to an image. */
  badge: (imageId: string) => ReactNode;
};

/** The stored images with links to their pages, and actions on several of them. */
export function ImageGrid({ filter, onFilter, badge }: ImageGridProps) {
  const query = useImages(filter);
  const images = query.images ?? none;
  const ids = useMemo(() => images.map(({ id }) => id), [images]);
  const { selected, toggle, extend, select, clear } = useSelection(ids);
  const heading = useRef<HTMLHeadingElement>(null);
  const remove = useDeleteImages();
  const download = useDownloadImages();
  const isSelecting = selected.size > 0 || download.isPending;
  const isEmpty = query.images?.length === 0 && !query.hasNextPage;

  useEscape(isSelecting, endSelection);

  function endSelection() {
    clear();
    download.forgetError();
  }

  function changeFilter(change: Partial<ImageFilter>) {
    // Images that are not shown must not be deleted.
    endSelection();
    onFilter(change);
  }

  /** Loads the pages that are missing, and returns every id. */
  async function loadAll(): Promise<string[]> {
    let { data, hasNextPage } = query;
    while (hasNextPage) {
      const next = await query.fetchNextPage();
      // The query reports the failure; the images loaded so far are there.
      if (next.isError) break;
      ({ data, hasNextPage } = next);
    }
    return data?.pages.flatMap((page) => page.images.map(({ id }) => id)) ?? [];
  }

  function move(event: KeyboardEvent<HTMLElement>) {
    const step = moveInGrid(event);
    const [from, to] = [ids[step?.from ?? -1], ids[step?.to ?? -1]];
    if (event.shiftKey && from && to) extend(from, to);
  }

  return (
    <section aria-labelledby="your-images">
      <div
        className={classNames('flex flex-wrap items-baseline gap-x-3', isEmpty && !filter.search && 'mb-4')}
      >
        <h2 id="your-images" ref={heading} tabIndex={-1} className="text-lg font-semibold outline-none">
          {t('Your images')}
        </h2>
        {query.data && <ImageCount total={query.total} search={filter.search} />}
      </div>
      {(!isEmpty || filter.search) && (
        <div className="sticky top-16 z-20 -mx-1 mb-3 flex min-h-17 items-center bg-canvas px-1 py-3">
          {isSelecting ? (
            <Suspense>
              <SelectionTools
                images={images.filter(({ id }) => selected.has(id))}
                isAll={selected.size === query.total}
                download={download}
                onLoadAll={loadAll}
                onSelect={select}
                onDelete={(imageIds) => remove.mutate(imageIds)}
                onEnd={endSelection}
                onLeft={() => heading.current?.focus({ preventScroll: true })}
              />
            </Suspense>
          ) : (
            <div className="flex w-full justify-between gap-3">
              <ImageSearch
                search={filter.search}
                onSearch={(search) => changeFilter({ search })}
                className="w-full max-w-80"
              />
              <ImageSortSelect sort={filter.sort} onSort={(sort) => changeFilter({ sort })} />
            </div>
          )}
        </div>
      )}
      {query.isPending ? (
        <SkeletonGrid className={grid} count={8} label={t('Loading images')} hasButton />
      ) : !query.data ? (
        <LoadFailure text={t(imageTexts.listFailed)} isTrying={query.isFetching} onTryAgain={query.refetch} />
      ) : !isEmpty ? (
        <ul
          aria-labelledby="your-images"
          aria-busy={query.isPlaceholderData}
          className={classNames(grid, query.isPlaceholderData && 'opacity-60')}
          onKeyDown={move}
        >
          {images.map((image) => (
            <ImageCard
              key={image.id}
              image={image}
              isSelected={selected.has(image.id)}
              isSelecting={isSelecting}
              onToggle={toggle}
              badge={badge}
            />
          ))}
        </ul>
      ) : filter.search ? (
        <NoHits
          search={filter.search}
          onShowAll={() => {
            changeFilter({ search: '' });
            heading.current?.focus({ preventScroll: true });
          }}
        />
      ) : (
        <EmptyState icon="image" title={t(imageTexts.noImages)}>
          {t('Upload your first one above.')}
        </EmptyState>
      )}
      <MoreImages query={query} />
    </section>
  );
}
