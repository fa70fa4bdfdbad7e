import { Button } from '@/components/button';
import { EmptyState } from '@/components/empty-state';

/** Shown if no image has what was searched for in its name. */
export function NoHits({ search, onShowAll }: { search: string; onShowAll: () => void }) {
  return (
    <div role="status">
      <EmptyState icon="image" title={`No images match “${search}”`}>
        <Button variant="secondary" size="sm" onClick={onShowAll}>
          Show all images
        </Button>
      </EmptyState>
    </div>
  );
}
