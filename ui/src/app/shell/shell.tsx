import { useEffect, useRef } from 'react';
import { Outlet, ScrollRestoration, useLocation, useNavigation } from 'react-router';
import { UploadsNotice } from '@/features/images/uploads-notice';
import { useLanguage } from '@/lib/language';
import { t } from '@/lib/translate';
import { Consent } from './consent';
import { useDropGuard } from './drop-guard';
import { FollowRuns } from './follow-runs';
import { Footer } from './footer';
import { OfflineNotice } from './offline-notice';
import { ReloadNotice } from './reload-notice';
import { TopBar } from './top-bar';
import { usePasteAnywhere } from './use-paste-anywhere';
import { usePictureRenewal } from './use-picture-renewal';

export function Shell() {
  useLanguage();
  const { pathname, state } = useLocation();
  const isInPlace: boolean = state?.isInPlace ?? false;
  const navigation = useNavigation();
  const main = useRef<HTMLElement>(null);
  const shown = useRef(pathname);

  useDropGuard();
  usePictureRenewal();
  usePasteAnywhere();

  // After a navigation, keyboard and screen reader users start from the new page, not from the old link.
  useEffect(() => {
    if (shown.current === pathname) return;
    shown.current = pathname;
    // The user continues the same work on the next page.
    if (isInPlace) return;
    main.current?.focus({ preventScroll: true });
  }, [pathname, isInPlace]);

  return (
    <div className="flex min-h-dvh flex-col">
      {/* biome-ignore lint/a11y/useValidAnchor: it leads to a place on the page. */}
      <a
        href="#content"
        onClick={(event) => {
          // A new entry of the history would lack the state of this one, such as the page to return to.
          event.preventDefault();
          main.current?.focus();
        }}
        className="absolute top-2 left-2 z-50 -translate-y-20 rounded-md bg-surface px-4 py-2 font-semibold focus:translate-y-0 focus:shadow-overlay"
      >
        {t('Skip to content')}
      </a>
      <TopBar />
      {navigation.state === 'loading' && (
        <div className="fixed inset-x-0 top-0 z-50 h-0.5 overflow-hidden" aria-hidden="true">
          <div className="h-full w-[30%] animate-slide bg-accent" />
        </div>
      )}
      {/* At least as tall as the window, so that the footer does not jump while a page loads. */}
      <main id="content" ref={main} tabIndex={-1} className="min-h-[calc(100dvh-4rem)] flex-1">
        <Outlet />
      </main>
      <Footer />
      <FollowRuns />
      <UploadsNotice />
      <OfflineNotice />
      <ReloadNotice />
      <Consent />
      <ScrollRestoration />
    </div>
  );
}
