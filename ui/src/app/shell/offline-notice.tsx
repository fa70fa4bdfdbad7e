import { Notice } from '@/components/notice';
import { useOnline } from '@/lib/online';

/** Over the page instead of in it, so that nothing moves when the connection comes and goes. */
export function OfflineNotice() {
  const isOnline = useOnline();
  return (
    !isOnline && (
      <>
        {/* Under the end of the page, so that the notice covers nothing there. */}
        <div className="h-28 sm:h-20" />
        <div className="pointer-events-none fixed inset-x-0 bottom-4 z-50 mx-auto w-fit max-w-[calc(100%-2rem)] rounded-md shadow-overlay">
          <Notice tone="warning">You are offline. Runs that have started go on without you.</Notice>
        </div>
      </>
    )
  );
}
