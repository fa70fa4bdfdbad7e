import type { ImageSort } from '@/lib/api-types';
import { t } from '@/lib/translate';
import { sorts } from './image-filter';

export function ImageSortSelect({ sort, onSort }: { sort: ImageSort; onSort: (sort: ImageSort) => void }) {
  return (
    <select
      aria-label={t('Sort by')}
      value={sort}
      onChange={(event) => onSort(event.target.value as ImageSort)}
      className="min-h-11 rounded-md border border-control bg-surface px-3 text-sm font-medium"
    >
      {Object.entries(sorts).map(([value, label]) => (
        <option key={value} value={value}>
          {t(label)}
        </option>
      ))}
    </select>
  );
}
