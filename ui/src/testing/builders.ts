import type {
  ApiKey,
  BoundModel,
  Checkout,
  Claim,
  Config,
  Delivery,
  Image,
  Job,
  Result,
  Storage,
  User,
  Verification,
  Webhook,
} from '@/lib/api-types';

// Plain, valid data. A test overrides only what matters to it.

export function aConfig(change: Partial<Config> = {}): Config {
  return {
    newUserCredits: 20,
    limits: {
      maxDimension: 6000,
      maxUpscaleDimension: 1440,
      maxUploadBytes: 25 * 1024 * 1024,
      maxPromptLength: 500,
    },
    packs: [
      { number: 1, credits: 20, amount: 200, currency: 'usd', label: 'Cheapest', note: null },
      { number: 2, credits: 55, amount: 500, currency: 'usd', label: 'Most popular', note: '10% More Value' },
      { number: 3, credits: 180, amount: 1500, currency: 'usd', label: 'Best Value', note: '20% More Value' },
    ],
    identity: {
      issuer: 'http://identity.test',
      clientId: 'retouch-ui',
      scope: 'openid email',
      idpHintParameter: 'identity_provider',
      providers: { google: null, facebook: null, password: '' },
      logoutStyle: 'end_session',
      logoutEndpoint: null,
    },
    tools: [
      {
        tool: 'remove-background',
        available: true,
        freeAvailable: true,
        costs: [{ factor: null, credits: 5 }],
        models: { paid: 'isnet', free: 'u2netp', allPaid: [aModel('isnet')], allFree: [aModel('u2netp')] },
        times: [],
      },
      {
        tool: 'upscale',
        available: true,
        freeAvailable: true,
        costs: [
          { factor: 2, credits: 3 },
          { factor: 4, credits: 6 },
        ],
        models: {
          paid: 'compact',
          free: 'compact',
          allPaid: [aModel('fine', { largestPixels: 512 * 512 }), aModel('compact')],
          allFree: [aModel('compact', { factor: 2 })],
        },
        times: [],
      },
      {
        tool: 'magic-fix',
        available: true,
        freeAvailable: false,
        costs: [{ factor: null, credits: 8 }],
        models: { paid: 'classical', free: null, allPaid: [aModel('classical')], allFree: [] },
        times: [],
      },
    ],
    features: { payments: false, heic: true, avif: true },
    site: {
      operatorName: null,
      operatorAddress: null,
      contactEmail: 'hello@example.com',
      adTag: null,
      rating: null,
    },
    magicFix: {
      modes: ['remove', 'restore', 'enhance'],
      vocabulary: null,
      demo: false,
      reach: [
        { mode: 'edit', divisor: 200, least: 4, most: 8, exactByDefault: true },
        { mode: 'restore', divisor: 400, least: 2, most: 6, exactByDefault: true },
        { mode: 'remove', divisor: 80, least: 8, most: 24, exactByDefault: false },
        { mode: 'enhance', divisor: 100, least: 6, most: 16, exactByDefault: false },
        { mode: 'add', divisor: 200, least: 4, most: 8, exactByDefault: true },
      ],
    },
    ...change,
  };
}

export function aModel(model: string, change: Partial<BoundModel> = {}): BoundModel {
  return { model, sha256: model.repeat(8), factor: null, largestPixels: null, ...change };
}

export function aUser(change: Partial<User> = {}): User {
  return { id: 'user-1', email: 'ada@example.com', credits: 20, reserved: 0, ...change };
}

export function aStorage(change: Partial<Storage> = {}): Storage {
  return { bytes: 0, pictures: 0, maxBytes: 100 * 1024 ** 3, maxPictures: 100_000, ...change };
}

export function anImage(change: Partial<Image> = {}): Image {
  const id = change.id ?? 'image-1';
  return {
    id,
    imageId: id,
    url: `/api/files/${id}`,
    thumbnailUrl: `/api/files/${id}?thumbnail`,
    x: 1200,
    y: 800,
    sizeBytes: 345_678,
    createdAt: '2026-11-20T10:00:00Z',
    freeRuns: { removeBackground: false, upscale: false },
    name: null,
    previewUrl: null,
    madeFrom: null,
    ...change,
  };
}

export function aResult(change: Partial<Result> = {}): Result {
  const id = change.imageId ?? 'result-1';
  return {
    imageId: id,
    sourceImageId: 'image-1',
    jobId: 'job-1',
    url: `/api/files/${id}`,
    thumbnailUrl: `/api/files/${id}?thumbnail`,
    previewUrl: null,
    width: 1200,
    height: 800,
    sizeBytes: 456_789,
    createdAt: '2026-11-20T10:01:00Z',
    tier: 'paid',
    credits: 5,
    model: 'isnet',
    modelSha256: 'f'.repeat(64),
    device: 'cpu',
    durationMs: 1830,
    factor: null,
    prompt: null,
    mode: null,
    demo: false,
    source: null,
    ...change,
  };
}

export function aJob(change: Partial<Job> = {}): Job {
  return {
    id: 'job-1',
    tool: 'remove-background',
    tier: 'paid',
    state: 'queued',
    imageId: 'image-1',
    factor: null,
    cost: 5,
    position: 0,
    etaSeconds: 4,
    progress: null,
    failure: null,
    results: [],
    createdAt: '2026-11-20T10:00:30Z',
    startedAt: null,
    finishedAt: null,
    ...change,
  };
}

export function aCheckout(change: Partial<Checkout> = {}): Checkout {
  const id = change.id ?? 'checkout-1';
  return {
    id,
    status: 'paid',
    fulfilled: true,
    created_at: Date.UTC(2026, 10, 20, 10) / 1000,
    credits: 20,
    email: 'ada@example.com',
    total_amount: 200,
    currency: 'usd',
    credits_taken_back: 0,
    session_id: `cs_${id}`,
    ...change,
  };
}

export function anOpenCheckout(change: Partial<Checkout> = {}): Checkout {
  return aCheckout({ status: 'open', fulfilled: false, email: null, ...change });
}

export function anApiKey(change: Partial<ApiKey> = {}): ApiKey {
  return {
    id: 'key-1',
    name: 'nightly batch',
    prefix: 'rt_kJ2v9x',
    createdAt: '2026-11-20T10:00:00Z',
    lastUsedAt: null,
    ...change,
  };
}

/** The report on a picture without credentials. */
export function aVerification(change: Partial<Verification> = {}): Verification {
  return {
    state: 'absent',
    source: null,
    isSourceClaimed: false,
    isGenerated: false,
    claim: null,
    problems: [],
    ...change,
  };
}

/** What the manifest of a Magic Fix claims. */
export function aClaim(change: Partial<Claim> = {}): Claim {
  return {
    generator: 'Retouch 0.2.0',
    signature: { name: 'Retouch', organization: 'Example Ltd', time: '2026-11-20T10:01:00Z', isOurs: true },
    actions: [
      { action: 'c2pa.opened', description: null, agent: null, when: '2026-11-20T10:01:00Z', source: null },
      {
        action: 'c2pa.edited',
        description: 'Repainted an area from a description',
        agent: 'Retouch 0.2.0',
        when: '2026-11-20T10:01:00Z',
        source: AI_MADE_PARTS,
      },
    ],
    ingredients: [{ title: 'Uploaded picture', isParent: true, claim: null, problems: [] }],
    ...change,
  };
}

export const AI_MADE_PARTS =
  'http://cv.iptc.org/newscodes/digitalsourcetype/compositeWithTrainedAlgorithmicMedia';

export function aWebhook(change: Partial<Webhook> = {}): Webhook {
  return {
    id: 'webhook-1',
    url: 'https://example.com/hooks',
    description: '',
    events: ['job.done', 'job.failed', 'job.canceled', 'credits.low'],
    creditsBelow: 20,
    enabled: true,
    disabledReason: null,
    failingSince: null,
    oldSecretUntil: null,
    createdAt: '2026-11-20T10:00:00Z',
    ...change,
  };
}

export function aDelivery(change: Partial<Delivery> = {}): Delivery {
  return {
    id: 'delivery-1',
    event: 'job.done',
    jobId: null,
    state: 'delivered',
    attempts: 1,
    attemptedAt: '2026-11-20T10:00:01Z',
    responseStatus: 200,
    problem: null,
    durationMs: 120,
    nextAttemptAt: null,
    createdAt: '2026-11-20T10:00:00Z',
    ...change,
  };
}
