import { Button } from '@/components/button';
import { EmptyState } from '@/components/empty-state';
import { t } from '@/lib/translate';

/** Shown if no image's name contains the search text. */
export function NoHits({ search, onShowAll }: { search: string; onShowAll: () => void }) {
  return (
    <div role="status">
      <EmptyState icon="image" title={t('No images match “{search}”', { search })}>
        <Button variant="secondary" size="sm" onClick={onShowAll}>
          {t('Show all images')}
        </Button>
      </EmptyState>
    </div>
  );
}
