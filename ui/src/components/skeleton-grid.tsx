import { Skeleton } from './skeleton';

type SkeletonGridProps = { className: string; count: number; label: string; hasButton?: boolean };

/** Placeholder of a thumbnail grid. */
export function SkeletonGrid({ className, count, label, hasButton = false }: SkeletonGridProps) {
  const slots = Array.from({ length: count }, (_, index) => `slot-${index}`);
  return (
    <div className={className} role="status" aria-label={label}>
      {slots.map((slot) => (
        <div key={slot} className="grid gap-2">
          <Skeleton className="aspect-square" />
          {hasButton && <Skeleton className="h-9 thumb:h-11" />}
        </div>
      ))}
    </div>
  );
}
