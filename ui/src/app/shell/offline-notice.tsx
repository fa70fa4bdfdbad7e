import { Notice } from '@/components/notice';
import { useOnline } from '@/lib/online';
import { t } from '@/lib/translate';

/** Floats over the page, so that nothing shifts when the connection comes and goes. */
export function OfflineNotice() {
  const isOnline = useOnline();
  return (
    !isOnline && (
      <>
        {/* Adds space below the footer, so that the notice does not cover it. */}
        <div className="h-28 sm:h-20" />
        <div
          data-offline
          className="pointer-events-none fixed inset-x-0 bottom-(--floor) z-50 mx-auto w-fit max-w-[calc(100%-2rem)] rounded-md shadow-overlay"
        >
          <Notice tone="warning">
            {t('You are offline. Runs that have started continue on the server.')}
          </Notice>
        </div>
      </>
    )
  );
}
