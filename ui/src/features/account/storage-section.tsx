import { LoadFailure } from '@/components/load-failure';
import { PageSection } from '@/components/page-section';
import { ProgressBar } from '@/components/progress-bar';
import { Skeleton } from '@/components/skeleton';
import type { Storage } from '@/lib/api-types';
import { formatBytes } from '@/lib/format';
import { currentLocale, plural, t } from '@/lib/translate';
import { useStorage } from './get-storage';
import { accountTexts } from './texts';

export function StorageSection() {
  const storage = useStorage();
  return (
    <PageSection title={t('Storage')} text={t('Your images and their results. Delete some to make room.')}>
      {storage.data ? (
        <Usage storage={storage.data} />
      ) : storage.isError ? (
        <LoadFailure
          text={t(accountTexts.storageFailed)}
          isTrying={storage.isFetching}
          onTryAgain={() => void storage.refetch()}
        />
      ) : (
        <div role="status" aria-label={t('Loading storage')}>
          <Skeleton className="h-10" />
        </div>
      )}
    </PageSection>
  );
}

function Usage({ storage: { bytes, pictures, maxBytes, maxPictures } }: { storage: Storage }) {
  const used = formatBytes(bytes);
  const size = maxBytes ? t('{used} of {limit}', { used, limit: formatBytes(maxBytes) }) : used;
  const count = (value: number) => value.toLocaleString(currentLocale());
  const number = maxPictures
    ? plural(
        maxPictures,
        { one: '{used} of {limit} pictures', other: '{used} of {limit} pictures' },
        { used: count(pictures), limit: count(maxPictures) },
      )
    : plural(pictures, { one: '{number} picture', other: '{number} pictures' }, { number: count(pictures) });
  // Whichever limit is nearer.
  const fraction = Math.max(maxBytes ? bytes / maxBytes : 0, maxPictures ? pictures / maxPictures : 0);
  const hasLimit = Boolean(maxBytes || maxPictures);
  return (
    <div className="grid gap-2">
      <p className="text-sm">
        {size} · {number}
      </p>
      {hasLimit && <ProgressBar label={t('Storage used')} fraction={Math.min(fraction, 1)} />}
    </div>
  );
}
