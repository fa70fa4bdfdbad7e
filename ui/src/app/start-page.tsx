import { Button } from '@/components/button';
import { Logo } from '@/components/logo';

/**
 * Before the settings have arrived: the frame of the page, so that nothing jumps when they do. index.html carries the
 * same, to be seen before any script.
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
          <h1 className="text-xl font-bold">The server cannot be reached</h1>
          <p className="text-soft">Check your connection, or try again in a moment.</p>
          <Button onClick={() => window.location.reload()}>Try again</Button>
        </main>
      )}
    </div>
  );
}
