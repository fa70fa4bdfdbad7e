import { Suspense, useState } from 'react';
import { lazyWithRetry } from '@/components/lazy-with-retry';
import { useOpenWhenLoaded } from '@/lib/use-open-when-loaded';
import { ActiveJobsButton } from './active-jobs-button';
import { useActiveJobs } from './get-active-jobs';

const loadMenu = () => import('./active-jobs-menu');
const ActiveJobsMenu = lazyWithRetry(loadMenu, null);

/** The count of active jobs in the top bar, with a menu of links to them. Hidden while there are none. */
export default function ActiveJobsIndicator() {
  const { data } = useActiveJobs();
  const jobs = data ?? [];
  const menu = useOpenWhenLoaded(loadMenu);
  const [isOpen, setOpen] = useState(false);
  // An open menu stays open when its last job ends.
  if (jobs.length === 0 && !isOpen) return null;

  const button = (
    <ActiveJobsButton
      count={jobs.length}
      aria-haspopup="menu"
      onPointerEnter={menu.prefetch}
      onFocus={menu.prefetch}
      onClick={() => menu.open(() => setOpen(true))}
    />
  );
  return menu.isLoaded ? (
    <Suspense fallback={button}>
      <ActiveJobsMenu jobs={jobs} isOpen={isOpen} onOpenChange={setOpen} />
    </Suspense>
  ) : (
    button
  );
}
