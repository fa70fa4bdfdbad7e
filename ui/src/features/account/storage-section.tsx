import { ProgressBar } from '@/components/progress-bar';
import { Skeleton } from '@/components/skeleton';
import type { Storage } from '@/lib/api-types';
import { formatBytes } from '@/lib/format';
import { useStorage } from './get-storage';
import { Section } from './section';
import { accountTexts } from './texts';

export function StorageSection() {
  const storage = useStorage();
  return (
    <Section title="Storage" text="Your images and their results. Delete some to make room.">
      {storage.data ? (
        <Usage storage={storage.data} />
      ) : storage.isError ? (
        <p className="text-sm text-soft">{accountTexts.storageFailed}</p>
      ) : (
        <div role="status" aria-label="Loading storage">
          <Skeleton className="h-10" />
        </div>
      )}
    </Section>
  );
}

function Usage({ storage: { bytes, pictures, maxBytes, maxPictures } }: { storage: Storage }) {
  const count = (number: number) => number.toLocaleString('en-US');
  const size = formatBytes(bytes) + (maxBytes ? ` of ${formatBytes(maxBytes)}` : '');
  const number = count(pictures) + (maxPictures ? ` of ${count(maxPictures)}` : '');
  // Whichever limit is nearer.
  const fraction = Math.max(maxBytes ? bytes / maxBytes : 0, maxPictures ? pictures / maxPictures : 0);
  const hasLimit = Boolean(maxBytes || maxPictures);
  return (
    <div className="grid gap-2">
      <p className="text-sm">
        {size} · {number} {pictures === 1 && !maxPictures ? 'picture' : 'pictures'}
      </p>
      {hasLimit && <ProgressBar label="Storage used" fraction={Math.min(fraction, 1)} />}
    </div>
  );
}
