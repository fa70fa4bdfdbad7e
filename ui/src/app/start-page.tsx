import { Button } from '@/components/button';
import { Logo } from '@/components/logo';
import { t } from '@/lib/translate';

/**
 * The page before its settings have loaded: the frame, so that nothing shifts when they arrive. index.html contains the
 * same markup, which shows before any script runs.
 */
export function StartPage({ hasFailed = false }: { hasFailed?: boolean }) {
  return (
    <div className="min-h-dvh">
      <div className="border-b border-line bg-surface">
        <div className="page flex h-16 items-center">
          <Logo />
        </div>
      </div>
      {hasFailed && (
        <main className="page grid justify-items-center gap-4 py-24 text-center">
          <h1 className="text-xl font-bold">{t('We can’t reach the server')}</h1>
          <p className="text-soft">{t('Check your connection, or try again in a moment.')}</p>
          <Button onClick={() => window.location.reload()}>{t('Try again')}</Button>
        </main>
      )}
    </div>
  );
}
