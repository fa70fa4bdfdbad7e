import { lazy, Suspense, useState } from 'react';
import { connectionLost } from '@/lib/api-client';
import { notifyError } from '@/lib/notify';
import { ActiveJobsButton } from './active-jobs-button';
import { useActiveJobs } from './get-active-jobs';
import { useFinishedJobs } from './use-finished-jobs';

const loadMenu = () => import('./active-jobs-menu');
const ActiveJobsMenu = lazy(loadMenu);

/** The count of active jobs in the top bar, with a menu of links to them. Hidden while there are none. */
export default function ActiveJobsIndicator() {
  const { data } = useActiveJobs();
  const jobs = data ?? [];
  useFinishedJobs(data);
  const [hasMenu, setHasMenu] = useState(false);
  const [isOpen, setOpen] = useState(false);
  // An open menu stays open when its last job ends.
  if (jobs.length === 0 && !isOpen) return null;

  async function open() {
    try {
      await loadMenu();
      setHasMenu(true);
      setOpen(true);
    } catch {
      notifyError(connectionLost);
    }
  }

  const button = (
    <ActiveJobsButton
      count={jobs.length}
      aria-haspopup="menu"
      onPointerEnter={() => void loadMenu().catch(() => {})}
      onFocus={() => void loadMenu().catch(() => {})}
      onClick={open}
    />
  );
  return hasMenu ? (
    <Suspense fallback={button}>
      <ActiveJobsMenu jobs={jobs} isOpen={isOpen} onOpenChange={setOpen} />
    </Suspense>
  ) : (
    button
  );
}
