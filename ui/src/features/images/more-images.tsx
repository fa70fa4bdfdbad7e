import { useRef } from 'react';
import { Button } from '@/components/button';
import { Notice } from '@/components/notice';
import { formatNumber, t } from '@/lib/translate';
import type { Images } from './get-images';
import { imageTexts } from './texts';
import { useInView } from './use-in-view';

/** Loads the next page when it comes near the window. The button is for keyboards, and after a failure. */
export function MoreImages({ query }: { query: Images }) {
  const { images = [], total, hasNextPage, isFetchingNextPage, isFetchNextPageError, fetchNextPage } = query;
  const place = useRef<HTMLDivElement>(null);

  useInView(place, images.length, () => {
    if (hasNextPage && !isFetchingNextPage && !isFetchNextPageError) void fetchNextPage();
  });

  if (!hasNextPage) return null;
  return (
    <div ref={place} className="mt-6 grid justify-items-center gap-3">
      {isFetchNextPageError && !isFetchingNextPage && (
        <Notice tone="error">{t(imageTexts.listFailed)}</Notice>
      )}
      <p className="text-sm text-soft tabular-nums">
        {t('{count} of {total} shown', {
          count: formatNumber(images.length),
          total: formatNumber(total),
        })}
      </p>
      <Button variant="secondary" isBusy={isFetchingNextPage} onClick={() => void fetchNextPage()}>
        {isFetchNextPageError ? t('Try again') : t('Show more')}
      </Button>
    </div>
  );
}
