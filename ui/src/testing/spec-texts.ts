import { aCheckout, aConfig, anImage, anOpenCheckout, aResult } from './builders';
import { MockApi } from './mock-api';

/*
 * The sentences, labels and numbers of the product specification, and the screens that must show them. Written from the
 * specification, not from the page: changing a word here changes the product.
 */

type Kind =
  | 'text'
  | 'toast'
  | 'heading'
  | 'link'
  | 'button'
  | 'disabled button'
  | 'tab'
  | 'columnheader'
  | 'option'
  | 'radio'
  | 'checked radio'
  | 'textbox'
  | 'menuitem'
  | 'dialog';

/** `to` is a link's `href`; `absent` means the screen must not show it. */
export type Expectation = { kind: Kind; text: string | RegExp; to?: string; absent?: boolean };

export type Step =
  | { click: string | RegExp }
  | { choose: { x: number; y: number } }
  | { type: string; into: string };

export type SpecScreen = {
  name: string;
  at: string;
  as: 'visitor' | 'user';
  api?: () => MockApi;
  /** Calls that fail, as `METHOD path`, with their responses. */
  broken?: Record<string, { status: number; body: string }>;
  steps?: Step[];
  shows: Expectation[];
};

const text = (text: string | RegExp): Expectation => ({ kind: 'text', text });
const toast = (text: string): Expectation => ({ kind: 'toast', text });
const heading = (text: string): Expectation => ({ kind: 'heading', text });
const link = (text: string | RegExp, to: string): Expectation => ({ kind: 'link', text, to });
const button = (text: string | RegExp): Expectation => ({ kind: 'button', text });
const disabled = (text: string): Expectation => ({ kind: 'disabled button', text });
const tab = (text: string): Expectation => ({ kind: 'tab', text });
const of = (kind: Kind, text: string | RegExp): Expectation => ({ kind, text });
const no = (saying: Expectation): Expectation => ({ ...saying, absent: true });

const withPayments = (change: Partial<MockApi> = {}) => {
  const api = Object.assign(new MockApi(), change);
  api.config.features.payments = true;
  return api;
};
const withImage = (x = 1200, y = 800) => Object.assign(new MockApi(), { images: [anImage({ x, y })] });
const withResults = () =>
  Object.assign(withImage(), {
    results: [aResult()],
    upscaled: [aResult({ imageId: 'up-2', factor: 2 }), aResult({ imageId: 'up-4', factor: 4 })],
    fixed: [aResult({ imageId: 'fix', prompt: 'remove the plant', mode: 'remove' })],
  });

const failing = (...calls: string[]) =>
  Object.fromEntries(calls.map((call) => [call, { status: 500, body: 'internal error' }]));
const freeExists = (call: string) => ({ [call]: { status: 409, body: '{"detail":"Free Exists"}' } });
const aPhoto: Step = { choose: { x: 800, y: 600 } };

const publicLinks = [
  link('Dashboard', '/dashboard'),
  link('Pricing', '/pricing'),
  link('Remove Background', '/remove-background'),
  link('Upscale', '/upscale'),
  link('Magic Fix', '/magic'),
];

const landing: SpecScreen[] = [
  {
    name: 'the landing page of a visitor',
    at: '/dashboard',
    as: 'visitor',
    shows: [
      heading('AI Image Editing Made Simple'),
      ...publicLinks,
      link('Try for free', '/signup'),
      tab('Magic Fix'),
      tab('Remove Background'),
      tab('Upscale image'),
      tab('Edit Details'),
      tab('Restore Images'),
      tab('Remove Details'),
      tab('Enhance Details'),
      tab('Add Details'),
      heading('AI-Powered Image Magic Fix'),
      heading('AI-Powered Background Removal'),
      heading('AI-Powered Image Upscaling'),
      link(/^Try now/, '/magic'),
      link(/^Try now/, '/remove-background'),
      link(/^Try now/, '/upscale'),
      heading('Start Processing Images With AI'),
      link('Start now', '/signup'),
      link('Login', '/login'),
      link('SignUp', '/signup'),
      no(link('My Images', '/images')),
      link('Privacy Policy', '/privacy'),
      link('Terms of Service', '/terms'),
      link('Contact', 'mailto:hello@example.com'),
    ],
  },
  {
    name: 'the landing page of a user',
    at: '/dashboard',
    as: 'user',
    shows: [
      ...publicLinks,
      link('My Images', '/images'),
      link('20 Credits for $2', '/pricing'),
      link('credits 20', '/pricing'),
      no(link('Try for free', '/signup')),
      no(link('Login', '/login')),
      no(link('SignUp', '/signup')),
    ],
  },
  {
    name: 'the menu on the email',
    at: '/pricing',
    as: 'user',
    steps: [{ click: 'ada@example.com' }],
    shows: [of('menuitem', 'Checkouts'), of('menuitem', 'Logout')],
  },
  {
    name: 'the mobile drawer',
    at: '/pricing',
    as: 'user',
    steps: [{ click: 'Open menu' }],
    shows: [...publicLinks, link('My Images', '/images'), link('Checkouts', '/checkouts'), button('Logout')],
  },
];

const pricing: SpecScreen[] = [
  {
    name: 'the prices for a visitor',
    at: '/pricing',
    as: 'visitor',
    shows: [
      heading('Flexible Pricing. Full Control'),
      text('20 Free Credits for New Users'),
      ...['Cheapest', 'Most popular', 'Best Value'].map(heading),
      ...['20 credits', '55 credits', '180 credits', '$2', '$5', '$15'].map(text),
      ...['10% More Value', '20% More Value'].map(text),
      link('Try for free', '/signup'),
      no(button('Choose')),
      // The price of each run.
      text(/^Remove Background\s*5 credits$/),
      text(/^Upscale 2X\s*3 credits$/),
      text(/^Upscale 4X\s*6 credits$/),
      text(/^Magic Fix\s*8 credits$/),
    ],
  },
  {
    name: 'the prices for a user',
    at: '/pricing',
    as: 'user',
    api: withPayments,
    shows: [button('Choose'), no(link('Try for free', '/signup'))],
  },
  {
    name: 'a payment that cannot be started',
    at: '/pricing',
    as: 'user',
    api: withPayments,
    broken: failing('POST /api/payments/*'),
    steps: [{ click: 'Choose' }],
    shows: [toast('Failed to redirect to payment, please try again later')],
  },
];

function withAllProviders() {
  const config = aConfig();
  config.identity.providers = { google: 'Google', facebook: 'Facebook', password: '' };
  return Object.assign(new MockApi(), { config });
}

const signingIn: SpecScreen[] = [
  {
    name: 'the login page',
    at: '/login',
    as: 'visitor',
    api: withAllProviders,
    shows: ['Google', 'Facebook', 'Username and Password'].map((name) => of('button', `Login with ${name}`)),
  },
  {
    name: 'the sign-up page',
    at: '/signup',
    as: 'visitor',
    api: withAllProviders,
    shows: ['Google', 'Facebook', 'Username and Password'].map((name) =>
      of('button', `Continue with ${name}`),
    ),
  },
  { name: 'a failed login', at: '/authcallback', as: 'visitor', shows: [heading('Login Failed')] },
  {
    name: 'a failed login to Magic Fix',
    at: '/authcallback-magic',
    as: 'visitor',
    shows: [heading('Login Failed')],
  },
  {
    name: 'Magic Fix for a visitor',
    at: '/magic',
    as: 'visitor',
    shows: [
      heading('Magic Fix requires logging in'),
      button('Login'),
      ...['Edit Details', 'Restore Images', 'Remove Details', 'Enhance Details', 'Add Details'].map(tab),
    ],
  },
];

const images: SpecScreen[] = [
  {
    name: 'the images of a new user',
    at: '/images',
    as: 'user',
    shows: [text('No images to show'), button('Choose files')],
  },
  {
    name: 'the images',
    at: '/images',
    as: 'user',
    api: withImage,
    shows: [link(/^Select/, '/images/image-1')],
  },
  {
    name: 'images that cannot be loaded',
    at: '/images',
    as: 'user',
    broken: failing('GET /api/images'),
    shows: [text('Failed to load images. Please try again later'), toast('Failed to load your images')],
  },
  {
    name: 'a chosen file',
    at: '/images',
    as: 'user',
    steps: [aPhoto],
    shows: [button('Upload'), button('Cancel')],
  },
  {
    name: 'a file that is too large',
    at: '/images',
    as: 'user',
    steps: [{ choose: { x: 6001, y: 20 } }],
    shows: [text('Image dimensions too big (Max 6000x6000)'), disabled('Upload')],
  },
  {
    name: 'a file that is too large to upscale',
    at: '/upscale',
    as: 'user',
    steps: [{ choose: { x: 20, y: 1441 } }],
    shows: [text('Image dimensions too big (Max 1440x1440)'), disabled('Upload')],
  },
  {
    name: 'an upload that fails',
    at: '/images',
    as: 'user',
    broken: failing('POST /api/images/upload'),
    steps: [aPhoto, { click: 'Upload' }],
    shows: [toast('Failed to upload image'), text('HTTP error! status: 500, message: internal error')],
  },
  {
    name: 'the picker',
    at: '/upscale',
    as: 'user',
    api: withImage,
    steps: [{ click: /^Image of / }],
    shows: [button('Cancel'), button('Select')],
  },
  {
    name: 'an image without results',
    at: '/images/image-1',
    as: 'user',
    api: withImage,
    shows: [
      link('Magic Fix', '/magic/image-1'),
      link('Remove Background', '/remove-background/image-1'),
      link('Upscale', '/upscale/image-1'),
      button('DELETE ALL IMAGES'),
      text('No Images to Show'),
    ],
  },
  {
    name: 'an image with results',
    at: '/images/image-1',
    as: 'user',
    api: withResults,
    shows: [button(/^DELETE Background removed/), button(/^DELETE Upscaled/), text('2X'), text('4X')],
  },
  {
    name: 'the confirmation before an image is deleted',
    at: '/images/image-1',
    as: 'user',
    api: withImage,
    steps: [{ click: 'DELETE ALL IMAGES' }],
    shows: [of('dialog', /./), button('Cancel')],
  },
  {
    name: 'an image that cannot be deleted',
    at: '/images/image-1',
    as: 'user',
    api: withImage,
    broken: failing('DELETE /api/images/:id'),
    steps: [{ click: 'DELETE ALL IMAGES' }, { click: 'Delete all' }],
    shows: [toast('Failed to delete image, try again later')],
  },
  {
    name: 'a result that cannot be deleted',
    at: '/images/image-1',
    as: 'user',
    api: withResults,
    broken: failing('DELETE /api/rmbg-images/:id'),
    steps: [{ click: 'DELETE Background removed, result 1' }, { click: 'Delete' }],
    shows: [toast('Failed to delete image')],
  },
  {
    name: 'an image that does not exist',
    at: '/images/nobody',
    as: 'user',
    shows: [
      heading('Failed to find your image'),
      link(/./, '/images'),
      toast('Failed to load your original image'),
    ],
  },
  {
    name: 'a tool page for an image that does not exist',
    at: '/upscale/nobody',
    as: 'user',
    shows: [heading('Failed to find your image'), link(/./, '/upscale')],
  },
];

const tools: SpecScreen[] = [
  {
    name: 'Remove Background with a result',
    at: '/remove-background/image-1',
    as: 'user',
    api: withResults,
    shows: [
      button('Remove Bg'),
      button('Remove Bg AI'),
      heading('Results'),
      text(/^5 credits/),
      ...['PNG', 'JPG', 'WebP'].map((name) => of('option', name)),
      button('Download'),
    ],
  },
  {
    name: 'the other path of Remove Background',
    at: '/background/image-1',
    as: 'user',
    api: withImage,
    shows: [button('Remove Bg AI')],
  },
  {
    name: 'a new result',
    at: '/remove-background/image-1',
    as: 'user',
    api: withImage,
    steps: [{ click: 'Remove Bg AI' }],
    shows: [text('NEW'), link('credits 15', '/pricing')],
  },
  {
    name: 'a run of Remove Background that fails',
    at: '/remove-background/image-1',
    as: 'user',
    api: withImage,
    broken: failing('POST /api/rmbg-images/remove-bg-ai'),
    steps: [{ click: 'Remove Bg AI' }],
    shows: [
      toast('Failed to remove image background'),
      text('HTTP error! status: 500, message: internal error'),
    ],
  },
  {
    name: 'a second free run of Remove Background',
    at: '/remove-background/image-1',
    as: 'user',
    api: withImage,
    broken: freeExists('POST /api/rmbg-images/remove-bg-free'),
    steps: [{ click: 'Remove Bg' }],
    shows: [toast('Free background remove image already created'), disabled('Remove Bg')],
  },
  {
    name: 'cutouts that cannot be loaded',
    at: '/remove-background/image-1',
    as: 'user',
    api: withImage,
    broken: failing('GET /api/rmbg-images/:id'),
    shows: [toast('Failed to load images with removed background')],
  },
  {
    name: 'Upscale with results',
    at: '/upscale/image-1',
    as: 'user',
    api: withResults,
    shows: [button('Upscale 2X'), button('Upscale 4X'), button('Free Upscale'), text('2X'), text('4X')],
  },
  {
    name: 'an image that is too large to upscale',
    at: '/upscale/image-1',
    as: 'user',
    api: () => withImage(1441, 20),
    shows: [
      text('Image dimensions too big (Max 1440x1440)'),
      disabled('Upscale 2X'),
      disabled('Upscale 4X'),
      disabled('Free Upscale'),
    ],
  },
  {
    name: 'an upscale that fails',
    at: '/upscale/image-1',
    as: 'user',
    api: withImage,
    broken: failing('POST /api/upscale/upscale-ai-2'),
    steps: [{ click: 'Upscale 2X' }],
    shows: [toast('Failed to upscale')],
  },
  {
    name: 'a second free upscale',
    at: '/upscale/image-1',
    as: 'user',
    api: withImage,
    broken: freeExists('POST /api/upscale/upscale-free'),
    steps: [{ click: 'Free Upscale' }],
    shows: [toast('Free upscale image already created'), disabled('Free Upscale')],
  },
  {
    name: 'upscales that cannot be loaded',
    at: '/upscale/image-1',
    as: 'user',
    api: withImage,
    broken: failing('GET /api/upscale/:id'),
    shows: [toast('Failed to load upscaled images')],
  },
  {
    name: 'Magic Fix with a result',
    at: '/magic/image-1',
    as: 'user',
    api: withResults,
    shows: [
      of('textbox', 'Prompt'),
      of('radio', '10 px'),
      of('checked radio', '20 px'),
      of('radio', '30 px'),
      of('button', 'Undo'),
      of('button', 'Clear'),
      button('Magic Fix'),
      text('“remove the plant”'),
    ],
  },
  {
    name: 'Magic Fix without a prompt',
    at: '/magic/image-1',
    as: 'user',
    api: withImage,
    steps: [{ click: 'Magic Fix' }],
    shows: [toast('Prompt is required')],
  },
  {
    name: 'Magic Fix with too long a prompt',
    at: '/magic/image-1',
    as: 'user',
    api: withImage,
    steps: [{ type: 'x'.repeat(501), into: 'Prompt' }, { click: 'Magic Fix' }],
    shows: [toast('Prompt is too long, maximum of 500 letters is allowed')],
  },
  {
    name: 'Magic Fix without a stroke',
    at: '/magic/image-1',
    as: 'user',
    api: withImage,
    steps: [{ type: 'remove it', into: 'Prompt' }, { click: 'Magic Fix' }],
    shows: [toast('You have to draw to select area you want to fix 1')],
  },
  {
    name: 'an image that is too large for Magic Fix',
    at: '/magic/image-1',
    as: 'user',
    api: () => withImage(6001, 20),
    shows: [text('Image dimensions too big (Max 6000x6000)'), disabled('Magic Fix')],
  },
  {
    name: 'fixes that cannot be loaded',
    at: '/magic/image-1',
    as: 'user',
    api: withImage,
    broken: failing('GET /api/magic-images/:id'),
    shows: [toast('Failed to load magic fix images')],
  },
];

const visitors: SpecScreen[] = [
  {
    name: 'the free Remove Background',
    at: '/remove-background',
    as: 'visitor',
    steps: [aPhoto],
    shows: [button('Remove Bg'), link('Remove Bg AI (Requires login)', '/signup')],
  },
  {
    name: 'the free Remove Background at its other path',
    at: '/background',
    as: 'visitor',
    steps: [{ choose: { x: 6001, y: 1 } }],
    shows: [text('Image dimensions too big (Max 6000x6000)'), disabled('Remove Bg')],
  },
  {
    name: 'the free Remove Background with its result',
    at: '/remove-background',
    as: 'visitor',
    steps: [aPhoto, { click: 'Remove Bg' }],
    shows: [button('Download'), disabled('Remove Bg')],
  },
  {
    name: 'a failure of the free Remove Background',
    at: '/remove-background',
    as: 'visitor',
    broken: failing('POST /api/free/remove-bg-fr'),
    steps: [aPhoto, { click: 'Remove Bg' }],
    shows: [toast('Failed to remove background, try again later')],
  },
  {
    name: 'the free Upscale',
    at: '/upscale',
    as: 'visitor',
    steps: [{ choose: { x: 1441, y: 20 } }],
    shows: [text('Image dimensions too big (Max 1440x1440)'), disabled('Free Upscale')],
  },
  {
    name: 'a second free Upscale of a visitor',
    at: '/upscale',
    as: 'visitor',
    broken: freeExists('POST /api/free/upscale-fr'),
    steps: [aPhoto, { click: 'Free Upscale' }],
    shows: [toast('Free upscale image already created'), disabled('Free Upscale')],
  },
];

const orders: SpecScreen[] = [
  {
    name: 'the orders',
    at: '/checkouts',
    as: 'user',
    api: () => withPayments({ checkouts: [aCheckout(), anOpenCheckout({ id: 'other' })] }),
    shows: [
      ...['Date', 'Fulfilled', 'Quantity'].map((name) => of('columnheader', name)),
      link(/2026/, '/checkouts/checkout-1'),
      text('20 credits'),
    ],
  },
  {
    name: 'orders that cannot be loaded',
    at: '/checkouts',
    as: 'user',
    broken: failing('GET /api/checkouts/'),
    shows: [toast('Failed to load checkouts')],
  },
  {
    name: 'a paid order',
    at: '/checkouts/checkout-1',
    as: 'user',
    api: () => withPayments({ checkouts: [aCheckout()] }),
    shows: [
      heading('Order Details'),
      ...['paid', 'Fulfilled', 'Date', 'Quantity', '20 Credits', 'Customer Email', 'ada@example.com'].map(
        text,
      ),
      ...['Amount', '$2'].map(text),
      link('Back to Checkouts', '/checkouts'),
    ],
  },
  {
    name: 'an order without an amount',
    at: '/checkouts/checkout-1',
    as: 'user',
    api: () => withPayments({ checkouts: [anOpenCheckout({ total_amount: null })] }),
    shows: [text('open'), text('To be fulfilled'), text('Unknown')],
  },
  {
    name: 'an order that cannot be loaded',
    at: '/checkouts/checkout-1',
    as: 'user',
    broken: failing('GET /api/checkouts/:id'),
    shows: [toast('Failed to load checkout')],
  },
  {
    name: 'the thank-you page of an order',
    at: '/return?session_id=cs_checkout-1',
    as: 'user',
    api: () => withPayments({ checkouts: [aCheckout()] }),
    shows: [
      heading('Thank you for your order'),
      text('A confirmation email will be sent to ada@example.com.'),
    ],
  },
];

const legal: SpecScreen[] = [
  {
    name: 'the terms',
    at: '/terms',
    as: 'visitor',
    shows: [
      text(/July 31, 2025/),
      text(/at least 18/),
      text(/non-refundable/),
      text(/until you delete them/),
      text(/within one week/),
      text(/30 days/),
      text(/courts of .*home country/),
      text(/the last 6 months/),
      text(/OpenRAIL/),
    ],
  },
  {
    name: 'the privacy policy',
    at: '/privacy',
    as: 'visitor',
    shows: [
      text(/May 21, 2025/),
      text(/under 16/),
      text(/until you delete them/),
      text(/only you/i),
      text(/within one week/),
    ],
  },
];

export const specScreens = [
  ...landing,
  ...pricing,
  ...signingIn,
  ...images,
  ...tools,
  ...visitors,
  ...orders,
  ...legal,
];
