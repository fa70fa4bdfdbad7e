import { Button } from '@/components/button';
import { Notice } from '@/components/notice';
import { useReload } from '@/lib/load-with-retry';
import { t } from '@/lib/translate';

/** Asks for one reload, which masks, prompts, and runs survive: after an update of the server, or if code stays missing. */
export function ReloadNotice() {
  const { isOutdated, missing } = useReload();
  return (
    (isOutdated || missing) && (
      <div className="fixed inset-x-0 bottom-(--floor) z-50 mx-auto w-fit max-w-[calc(100%-2rem)] rounded-md shadow-overlay">
        <Notice tone="warning">
          {isOutdated
            ? t('Retouch was updated. Reload to continue. Your runs, masks, and prompts are kept.')
            : t(
                'Part of this page could not be loaded. Reload to continue. Your runs, masks, and prompts are kept.',
              )}{' '}
          <Button
            variant="secondary"
            size="sm"
            className="mt-2 sm:mt-0"
            onClick={() => window.location.reload()}
          >
            {t('Reload')}
          </Button>
        </Notice>
      </div>
    )
  );
}
