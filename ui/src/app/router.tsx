import type { ComponentType } from 'react';
import { Navigate, type RouteObject } from 'react-router';
import { PageSkeleton } from '@/components/page-skeleton';
import { Protected } from '@/features/auth/protected';
import { useLanguage, withLaterTexts } from '@/lib/language';
import { loadWithRetry } from '@/lib/load-with-retry';
import { paths } from '@/lib/paths';
import type { Ahead } from './load-ahead';
import { ErrorRoute } from './routes/error';
import { Shell } from './shell/shell';

type LoadPage = () => Promise<{ default: ComponentType }>;
type PageAhead = Omit<Ahead, 'loadCode'>;

/** A route whose code loads on the first visit, and its data at the same time. */
function page(path: string, load: LoadPage, data?: PageAhead): RouteObject {
  const ahead: Ahead = { loadCode: load, ...data };
  return {
    path,
    handle: ahead,
    lazy: async () => {
      const Page = (await loadWithRetry(load)).default;
      return { Component: inLanguage(Page) };
    },
    hydrateFallbackElement: <PageSkeleton />,
    errorElement: <ErrorRoute />,
  };
}

/** A page with many texts that few visitors read. The few texts of other such pages are not worth a request. */
function pageWithLaterTexts(path: string, load: LoadPage, data?: PageAhead): RouteObject {
  return page(path, withLaterTexts(load), data);
}

/** Renders a page again when the language changes. */
function inLanguage(Page: ComponentType): ComponentType {
  return function PageInLanguage() {
    useLanguage();
    return <Page />;
  };
}

const removeBackground = () => import('./routes/remove-background');
const removeBackgroundImage = () => import('./routes/remove-background-image');
const upscale = () => import('./routes/upscale');
const upscaleImage = () => import('./routes/upscale-image');

export const routes: RouteObject[] = [
  {
    element: <Shell />,
    errorElement: <ErrorRoute />,
    children: [
      { path: paths.root, element: <Navigate to={paths.dashboard} replace /> },
      page(paths.dashboard, () => import('./routes/dashboard')),
      page(paths.pricing, () => import('./routes/pricing')),
      page(paths.login, () => import('./routes/login')),
      page(paths.signup, () => import('./routes/signup')),
      page(paths.authCallback, () => import('./routes/auth-callback')),
      page(paths.authCallbackMagic, () => import('./routes/auth-callback-magic')),
      page(paths.terms, () => import('./routes/terms')),
      page(paths.privacy, () => import('./routes/privacy')),
      pageWithLaterTexts(paths.verify, () => import('./routes/verify')),
      page('/background', removeBackground, { data: 'picker', tool: 'remove-background' }),
      page(paths.removeBackground, removeBackground, {
        data: 'picker',
        tool: 'remove-background',
      }),
      page(paths.upscale, upscale, { data: 'picker', tool: 'upscale' }),
      page(paths.magic, () => import('./routes/magic'), { data: 'picker', tool: 'magic-fix' }),
      {
        element: <Protected />,
        children: [
          page(paths.images, () => import('./routes/images'), { data: 'images' }),
          page('/images/:imageId', () => import('./routes/image'), { data: 'image' }),
          page('/background/:imageId', removeBackgroundImage, {
            data: 'image',
            tool: 'remove-background',
          }),
          page('/remove-background/:imageId', removeBackgroundImage, {
            data: 'image',
            tool: 'remove-background',
          }),
          pageWithLaterTexts(paths.checkouts, () => import('./routes/checkouts'), { data: 'checkouts' }),
          pageWithLaterTexts('/checkouts/:checkoutId', () => import('./routes/checkout-details'), {
            data: 'checkout',
          }),
          pageWithLaterTexts(paths.payment, () => import('./routes/checkout')),
          pageWithLaterTexts(paths.paid, () => import('./routes/return')),
          pageWithLaterTexts(paths.account, () => import('./routes/account'), { data: 'account' }),
          page('/upscale/:imageId', upscaleImage, { data: 'image', tool: 'upscale' }),
          page('/magic/:imageId', () => import('./routes/magic-image'), {
            data: 'image',
            tool: 'magic-fix',
          }),
        ],
      },
      page('*', () => import('./routes/not-found')),
    ],
  },
];
