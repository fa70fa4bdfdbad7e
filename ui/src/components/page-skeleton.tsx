import { t } from '@/lib/translate';
import { Skeleton } from './skeleton';

/** Shown while a route's code loads. */
export function PageSkeleton() {
  return (
    <div className="page py-8 md:py-12" role="status" aria-label={t('Loading')}>
      <Skeleton className="h-9 w-64 max-w-full" />
      <Skeleton className="mt-3 h-5 w-96 max-w-full" />
      <Skeleton className="mt-8 h-96 w-full" />
    </div>
  );
}
