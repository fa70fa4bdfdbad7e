import { delay, HttpResponse, http } from 'msw';
import { setupWorker } from 'msw/browser';
import type { Verification } from '@/lib/api-types';
import {
  AI_MADE_PARTS,
  aCheckout,
  aClaim,
  anApiKey,
  anImage,
  anOpenCheckout,
  aResult,
  aVerification,
} from './builders';
import { MockApi } from './mock-api';
import { storeSession } from './session';

const fileNames = [
  'plant.jpg',
  'plant (cut out).png',
  'IMG_2041.jpeg',
  'a very long name of a product photo, front view, final version 2.webp',
  null,
];

/**
 * `npm run dev:mock`: the page without a server. `?as=visitor` is signed out, `?empty` is a new account, `?ads` has an
 * advertising tag, `?images=100` has that many images, `?held` has a run that holds credits, `?running` has two active jobs; `?fail=/api/images` makes a
 * call fail and `?hang=/api/images` leaves it unanswered. `?says=invalid` is the state of every picture to verify.
 */
export async function startMock() {
  const params = new URLSearchParams(window.location.search);
  const api = new MockApi();
  api.stepMs = 900;
  api.pictureOf = drawing;
  api.finished = await pngOf(drawing('finished'));
  api.images = Array.from({ length: Number(params.get('images') ?? 11) }, (_, index) => {
    const id = `image-${index + 100}`;
    const [x, y] = index % 3 === 0 ? [1080, 1440] : [1600, 1200];
    const createdAt = new Date(Date.UTC(2026, 10, 20, 10) - index * 3_600_000).toISOString();
    const made = { resultId: 'result-1', imageId: 'image-100', tool: 'remove-background' as const };
    return anImage({
      id,
      name: fileNames[index % fileNames.length],
      url: drawing(id),
      thumbnailUrl: drawing(id),
      madeFrom: index === 1 ? made : null,
      sizeBytes: 345_678 * ((index % 5) + 1),
      createdAt,
      x,
      y,
    });
  });
  const first = api.images[0];
  if (first) {
    api.results = [1, 2].map((index) =>
      aResult({
        imageId: `result-${index}`,
        sourceImageId: first.id,
        url: drawing(`result-${index}`),
        thumbnailUrl: drawing(`result-${index}`),
        width: first.x,
        height: first.y,
      }),
    );
    api.upscaled = ([2, 4] as const).map((factor) =>
      aResult({
        imageId: `upscaled-${factor}`,
        sourceImageId: first.id,
        url: drawing(`upscaled-${factor}`),
        thumbnailUrl: drawing(`upscaled-${factor}`),
        width: first.x * factor,
        height: first.y * factor,
        factor,
        model: 'compact',
      }),
    );
    api.fixed = [
      aResult({
        imageId: 'fixed-1',
        sourceImageId: first.id,
        url: drawing('fixed-1'),
        thumbnailUrl: drawing('fixed-1'),
        width: first.x,
        height: first.y,
        prompt: 'remove the plant',
        mode: 'remove',
        model: 'classical',
        source: AI_MADE_PARTS,
      }),
    ];
  }
  api.config.features.payments = true;
  api.verification = aReport(params.get('says'));
  api.checkouts = [
    anOpenCheckout({ id: 'checkout-open', credits: 180, total_amount: 1500 }),
    aCheckout({ id: 'checkout-paid', created_at: Date.UTC(2026, 9, 3, 8, 30) / 1000 }),
    aCheckout({
      id: 'checkout-refunded',
      status: 'refunded',
      credits: 55,
      total_amount: 500,
      credits_taken_back: 40,
    }),
  ];
  api.apiKeys = [anApiKey(), anApiKey({ id: 'key-shop', name: 'shop', lastUsedAt: '2026-11-21T08:00:00Z' })];
  if (params.has('ads'))
    api.config.site = { ...api.config.site, adTag: { id: 'AW-1', conversion: 'AW-1/test' } };
  if (params.has('held')) api.user.reserved = 8;
  if (params.has('running')) {
    const count = { unit: 'tiles' as const, done: 12, total: 48 };
    const progress = { stage: 'infer' as const, fraction: 0.27, count };
    const run = { tool: 'upscale' as const, factor: 4, imageId: 'image-100', state: 'running' as const };
    api.startJob({ ...run, position: null, etaSeconds: 150, progress });
    api.startJob({ imageId: 'image-101', position: 1, etaSeconds: 40 });
  }
  if (params.has('empty')) Object.assign(api, { images: [], checkouts: [], apiKeys: [] });
  if (params.get('as') !== 'visitor') storeSession(api.config.identity);
  const failures = [
    ...params
      .getAll('fail')
      .map((path) => http.all(`*${path}`, () => new HttpResponse('Out of order', { status: 500 }))),
    ...params.getAll('hang').map((path) => http.all(`*${path}`, () => delay('infinite'))),
  ];
  await setupWorker(...failures, ...api.handlers()).start({ quiet: true, onUnhandledRequest: 'bypass' });
}

/** The report on a picture that was made from another picture from elsewhere. */
function aReport(says: string | null): Verification {
  const state = (says ?? 'trusted') as Verification['state'];
  if (state === 'absent') return aVerification({ source: AI_MADE_PARTS, isGenerated: true });
  const mismatch = { code: 'assertion.dataHash.mismatch', explanation: null };
  const elsewhere = aClaim({
    generator: 'A camera with a very long name, model 12, firmware 7.1.0-beta+20261120',
    signature: { name: 'Camera 7', organization: 'Elsewhere GmbH', time: null, isOurs: false },
    ingredients: [{ title: null, isParent: false, claim: null, problems: [mismatch] }],
  });
  return aVerification({
    state,
    source: AI_MADE_PARTS,
    isSourceClaimed: true,
    isGenerated: true,
    claim: aClaim({
      ingredients: [{ title: 'Uploaded picture', isParent: true, claim: elsewhere, problems: [] }],
      ...(state === 'valid' && { signature: elsewhere.signature }),
    }),
    problems: state === 'invalid' ? [mismatch] : [],
  });
}

/** A potted plant, without a background if it is a result. */
function drawing(id: string): string {
  const seed = [...id].reduce((sum, letter) => sum + letter.charCodeAt(0), 0);
  const hue = (seed * 47) % 360;
  const background = id.startsWith('result')
    ? ''
    : `<rect width="400" height="300" fill="hsl(${hue} 45% 75%)"/>`;
  const svg = `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 400 300" width="1600" height="1200">${background}<path d="M200 176c-8-46-40-64-70-66 2 36 24 66 70 70z" fill="#3f9a6d"/><path d="M200 166c4-60 36-90 78-94 2 52-26 90-78 98z" fill="#2c7f59"/><path d="M146 196h108l-14 76a10 10 0 0 1-10 8h-60a10 10 0 0 1-10-8z" fill="hsl(${(hue + 180) % 360} 40% 55%)"/></svg>`;
  return `data:image/svg+xml,${encodeURIComponent(svg)}`;
}

/** The API renders PNGs, which browsers do not mistake for SVG. */
async function pngOf(url: string): Promise<Blob> {
  const picture = new Image();
  picture.src = url;
  await picture.decode();
  const canvas = new OffscreenCanvas(picture.width, picture.height);
  canvas.getContext('2d')?.drawImage(picture, 0, 0);
  return canvas.convertToBlob();
}
