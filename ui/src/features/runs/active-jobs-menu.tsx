import * as Menu from 'radix-ui/dropdown-menu';
import { Link } from 'react-router';
import type { Job } from '@/lib/api-types';
import { t } from '@/lib/translate';
import { ActiveJobsButton } from './active-jobs-button';
import { jobPage } from './job-page';
import { JobRow } from './job-row';

type ActiveJobsMenuProps = { jobs: Job[]; isOpen: boolean; onOpenChange: (isOpen: boolean) => void };

export default function ActiveJobsMenu({ jobs, isOpen, onOpenChange }: ActiveJobsMenuProps) {
  return (
    // Not modal: a modal menu locks scrolling and removes the scroll bar, which shifts the page.
    <Menu.Root modal={false} open={isOpen} onOpenChange={onOpenChange}>
      <Menu.Trigger asChild>
        <ActiveJobsButton count={jobs.length} />
      </Menu.Trigger>
      <Menu.Portal>
        <Menu.Content
          align="end"
          sideOffset={8}
          collisionPadding={16}
          className="z-50 max-h-[min(24rem,calc(100dvh-6rem))] w-72 animate-rise overflow-y-auto rounded-md border border-line bg-surface p-1 shadow-overlay"
        >
          {jobs.length === 0 && <p className="px-3 py-2 text-sm text-soft">{t('Nothing is running')}</p>}
          {jobs.map((job) => (
            <Menu.Item
              key={job.id}
              asChild
              className="flex min-h-11 items-center gap-3 rounded-sm px-3 py-2 text-sm outline-none data-highlighted:bg-accent-wash"
            >
              <Link to={jobPage(job)}>
                <JobRow job={job} />
              </Link>
            </Menu.Item>
          ))}
        </Menu.Content>
      </Menu.Portal>
    </Menu.Root>
  );
}
