import { useOnline } from '@/lib/online';
import { t } from '@/lib/translate';

/** At the lower edge of the window, below all that floats there: nothing else shifts when the connection comes and goes. */
export function OfflineNotice() {
  const isOnline = useOnline();
  return (
    !isOnline && (
      <p
        data-offline
        role="alert"
        className="fixed inset-x-0 bottom-0 z-50 grid min-h-(--offline) place-content-center border-t border-line bg-warning-wash px-4 text-center text-warning text-xs sm:text-sm"
      >
        {t('You are offline. Runs that have started continue on the server.')}
      </p>
    )
  );
}
