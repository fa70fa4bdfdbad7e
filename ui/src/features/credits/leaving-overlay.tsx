import { Spinner } from '@/components/spinner';
import { t } from '@/lib/translate';

/** Covers the page until the browser leaves for the payment page. */
export function LeavingOverlay() {
  return (
    <div className="fixed inset-0 z-50 grid place-items-center bg-scrim p-4">
      <p className="flex items-center gap-3 rounded-md bg-surface px-6 py-4 font-semibold shadow-overlay">
        <Spinner label={t('Taking you to the payment page…')} />
      </p>
    </div>
  );
}
