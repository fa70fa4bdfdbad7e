import { Suspense, useRef, useState } from 'react';
import { Link, NavLink } from 'react-router';
import { ButtonLink } from '@/components/button-link';
import { Icon } from '@/components/icon';
import { lazyWithRetry } from '@/components/lazy-with-retry';
import { Logo } from '@/components/logo';
import { Skeleton } from '@/components/skeleton';
import { CreditsButton } from '@/features/credits/credits-button';
import { Promotion } from '@/features/credits/promotion';
import { classNames } from '@/lib/class-names';
import { paths } from '@/lib/paths';
import { useSession } from '@/lib/session';
import { t } from '@/lib/translate';
import { useOpenWhenLoaded } from '@/lib/use-open-when-loaded';
import { Account } from './account';
import { ownLinks, publicLinks } from './navigation-links';

// Loads on hover, to keep it out of the first load.
const loadDrawer = () => import('./mobile-drawer');
const MobileDrawer = lazyWithRetry(loadDrawer, null);
// Only users have runs. If it cannot be loaded, the bar renders without it.
const ActiveJobsIndicator = lazyWithRetry(() => import('@/features/runs/active-jobs-indicator'), null);

export function TopBar() {
  const { isLoading, isSignedIn } = useSession();
  const [isDrawerOpen, setDrawerOpen] = useState(false);
  const drawer = useOpenWhenLoaded(loadDrawer);
  const opener = useRef<HTMLButtonElement>(null);
  const links = isSignedIn ? [...publicLinks, ...ownLinks] : publicLinks;

  return (
    <header className="group/bar sticky top-0 z-30 border-b border-line bg-surface">
      <div className="page flex h-16 items-center gap-2 lg:gap-4">
        {/* On a small phone, the name makes room for the indicator of active jobs. */}
        <Link
          to={paths.dashboard}
          className="-ml-1 inline-flex min-h-11 items-center rounded-md px-1 max-[24rem]:group-has-data-running/bar:w-10 max-[24rem]:group-has-data-running/bar:overflow-hidden"
          aria-label="Retouch"
        >
          <Logo />
        </Link>

        <nav aria-label={t('Main')} className="hidden lg:block">
          <ul className="flex">
            {links.map(({ to, label }) => (
              <li key={to}>
                <NavLink
                  to={to}
                  className={({ isActive }) =>
                    classNames(
                      'inline-flex min-h-10 items-center rounded-md px-2.5 text-sm font-medium whitespace-nowrap hover:bg-sunken',
                      isActive ? 'text-accent' : 'text-soft hover:text-ink',
                    )
                  }
                >
                  {t(label)}
                </NavLink>
              </li>
            ))}
          </ul>
        </nav>

        <div className="ml-auto flex min-w-0 items-center gap-2">
          {isLoading ? (
            <Skeleton className="h-9 thumb:h-11 w-32" />
          ) : isSignedIn ? (
            <>
              {/* First in its row, so that it shifts nothing else when it appears. */}
              <Suspense>
                <ActiveJobsIndicator />
              </Suspense>
              {/* Between the drawer and a wide bar, the links take its room, and the account menu shows it. */}
              <span className="hidden md:max-lg:block min-[75rem]:block">
                <ButtonLink to={paths.pricing} variant="quiet" size="sm">
                  <Promotion />
                </ButtonLink>
              </span>
              <CreditsButton />
              {/* A long email is the first item to shrink. The chevron ends where the page does. */}
              <span className="-mr-3 hidden min-w-0 lg:block">
                <Account />
              </span>
            </>
          ) : (
            <>
              <span className="hidden sm:block">
                <ButtonLink to={paths.login} variant="quiet" size="sm">
                  {t('Login')}
                </ButtonLink>
              </span>
              <ButtonLink to={paths.signup} size="sm">
                {t('SignUp')}
              </ButtonLink>
            </>
          )}
          <button
            ref={opener}
            type="button"
            aria-label={t('Open menu')}
            aria-haspopup="dialog"
            aria-expanded={isDrawerOpen}
            className="grid size-11 place-items-center rounded-md hover:bg-sunken lg:hidden"
            onPointerEnter={drawer.prefetch}
            onClick={() => drawer.open(() => setDrawerOpen(true))}
          >
            <Icon name="menu" />
          </button>
        </div>
      </div>
      {isDrawerOpen && (
        <Suspense>
          <MobileDrawer
            links={links}
            onClose={() => setDrawerOpen(false)}
            onClosed={() => opener.current?.focus()}
          />
        </Suspense>
      )}
    </header>
  );
}
