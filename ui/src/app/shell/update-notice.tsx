import { Button } from '@/components/button';
import { Notice } from '@/components/notice';
import { useBuild } from '@/lib/load-with-retry';
import { t } from '@/lib/translate';

/** Asks for one reload after an update of the server. Masks, prompts, and runs survive it. */
export function UpdateNotice() {
  const { isOutdated } = useBuild();
  return (
    isOutdated && (
      <div className="fixed inset-x-0 bottom-(--floor) z-50 mx-auto w-fit max-w-[calc(100%-2rem)] rounded-md shadow-overlay">
        <Notice tone="warning">
          {t('Retouch was updated. Reload to continue. Your runs, masks, and prompts are kept.')}{' '}
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
