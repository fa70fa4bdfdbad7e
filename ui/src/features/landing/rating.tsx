import { useState } from 'react';
import { Button } from '@/components/button';
import { useConfig } from '@/lib/env';
import { t } from '@/lib/translate';
import { mayShowRating, rememberRating } from './rating-choice';

/**
 * The rating of a review service. In a frame of another origin, so that its scripts cannot reach this page, and loaded
 * only on request, because the service learns the user's IP address.
 */
export function Rating() {
  const { rating } = useConfig().site;
  const [isShown, setShown] = useState(mayShowRating);
  if (!rating) return null;

  function show(isVisible: boolean) {
    rememberRating(isVisible);
    setShown(isVisible);
  }

  return (
    <section className="page pt-12 md:pt-20" aria-labelledby="rating">
      <div className="rounded-lg border border-line bg-surface p-6">
        <div className="flex flex-wrap items-center justify-between gap-4">
          <h2 id="rating" className="text-lg font-semibold">
            {t('What people say on {service}', { service: rating.service })}
          </h2>
          <Button variant="secondary" size="sm" onClick={() => show(!isShown)}>
            {isShown ? t('Hide rating') : t('Show rating')}
          </Button>
        </div>
        {isShown ? (
          <iframe
            src={rating.url}
            title={t('Rating on {service}', { service: rating.service })}
            height={rating.height}
            loading="lazy"
            referrerPolicy="no-referrer"
            sandbox="allow-scripts allow-same-origin allow-popups allow-popups-to-escape-sandbox"
            className="mt-4 w-full rounded-md"
          />
        ) : (
          <p className="mt-2 max-w-xl text-sm text-soft">
            {t(
              'It comes from {host}, which learns your IP address when you show it. This browser remembers your choice.',
              { host: new URL(rating.url).host },
            )}
          </p>
        )}
      </div>
    </section>
  );
}
