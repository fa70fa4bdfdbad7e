import { useEffect } from 'react';
import { Button } from '@/components/button';
import { CenteredPage } from '@/components/centered-page';
import { t } from '@/lib/translate';

const reload = () => window.location.reload();

/** A route that failed, usually because its code could not be loaded: no network, or a new release. */
export function ErrorRoute() {
  // Offline, a reload would show the browser's error page, so it waits for the network.
  useEffect(() => {
    if (navigator.onLine) return;
    window.addEventListener('online', reload, { once: true });
    return () => window.removeEventListener('online', reload);
  }, []);

  return (
    <CenteredPage icon="warning" title={t('We could not show this page')}>
      <p>
        {t(
          'You may have lost the connection, or Retouch was just updated. Your images and credits are not affected.',
        )}
      </p>
      <Button onClick={reload}>{t('Reload')}</Button>
    </CenteredPage>
  );
}
