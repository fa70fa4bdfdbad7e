import { useEffect } from 'react';
import { Button } from '@/components/button';
import { CenteredPage } from '@/components/centered-page';

const reload = () => window.location.reload();

/** A route that broke, most often because its code could not be fetched: no network, or an update. */
export function ErrorRoute() {
  // Without a network a reload would show the browser's own error page, so it waits until there is one.
  useEffect(() => {
    if (navigator.onLine) return;
    window.addEventListener('online', reload, { once: true });
    return () => window.removeEventListener('online', reload);
  }, []);

  return (
    <CenteredPage icon="warning" title="This page could not be shown">
      <p>
        The connection may have been lost, or Retouch was just updated. Your images and credits are not
        affected.
      </p>
      <Button onClick={reload}>Load it again</Button>
    </CenteredPage>
  );
}
