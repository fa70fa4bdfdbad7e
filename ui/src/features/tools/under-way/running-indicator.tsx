import { lazy, Suspense, useState } from 'react';
import { connectionLost } from '@/lib/api-client';
import { notifyError } from '@/lib/notify';
import { useEnded } from './ended';
import { useRunning } from './get-running';
import { RunningButton } from './running-button';

const loadMenu = () => import('./running-menu');
const RunningMenu = lazy(loadMenu);

/** In the top bar of every page, as long as anything waits or runs: how many, and the way to each. */
export default function RunningIndicator() {
  const { data } = useRunning();
  const jobs = data ?? [];
  useEnded(data);
  const [isWanted, setWanted] = useState(false);
  const [isOpen, setOpen] = useState(false);
  // What is open is not taken away from under the pointer.
  if (jobs.length === 0 && !isOpen) return null;

  async function open() {
    try {
      await loadMenu();
      setWanted(true);
      setOpen(true);
    } catch {
      notifyError(connectionLost);
    }
  }

  const button = (
    <RunningButton
      count={jobs.length}
      aria-haspopup="menu"
      onPointerEnter={() => void loadMenu().catch(() => {})}
      onFocus={() => void loadMenu().catch(() => {})}
      onClick={open}
    />
  );
  return isWanted ? (
    <Suspense fallback={button}>
      <RunningMenu jobs={jobs} isOpen={isOpen} onOpenChange={setOpen} />
    </Suspense>
  ) : (
    button
  );
}
