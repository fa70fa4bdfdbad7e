import { HttpResponse, http } from 'msw';
import type {
  ApiKey,
  Checkout,
  Config,
  Delivery,
  Image,
  Job,
  PaymentStatus,
  Result,
  Storage,
  ToolName,
  User,
  Verification,
  Webhook,
  WebhookRequest,
} from '@/lib/api-types';
import {
  aConfig,
  aDelivery,
  aJob,
  anApiKey,
  anImage,
  anOpenCheckout,
  aResult,
  aStorage,
  aUser,
  aVerification,
  aWebhook,
} from './builders';
import { pageOf } from './image-pages';

const beingSent = { state: 'waiting', attempts: 0, responseStatus: null, durationMs: null } as const;

/** An in-memory API for the tests and `npm run dev:mock`. */
export class MockApi {
  config: Config = aConfig();
  user: User = aUser();
  storage: Storage = aStorage();
  images: Image[] = [];
  /** Background removals. */
  results: Result[] = [];
  upscaled: Result[] = [];
  fixed: Result[] = [];
  jobs: Job[] = [];
  /** Newest first. */
  checkouts: Checkout[] = [];
  apiKeys: ApiKey[] = [];
  webhooks: Webhook[] = [];
  /** Those of all webhooks, newest first. */
  deliveries: Delivery[] = [];
  /** All requests, as `METHOD /path?query`. */
  calls: string[] = [];
  idempotencyKeys: string[] = [];
  /** The images of uploads, by idempotency key. */
  private readonly uploads = new Map<string, Image>();
  /** The prompts of Magic Fix runs. */
  prompts: string[] = [];
  /** The bodies of requests for a ZIP file. */
  archives: unknown[] = [];
  /** The requests of click to select. */
  selections: unknown[] = [];
  /** The requests of samples: their query and the file. */
  samples: { query: string; file: File }[] = [];
  /** What every click selects. */
  mask: Blob = new Blob();
  /** Whether the account's event stream ends at once, as behind a proxy that drops it. */
  isStreamBroken = false;
  /** Open event streams of the account. */
  streams = 0;
  /** Their choices of an exact mask; null leaves it to the API. */
  exactMasks: (string | null)[] = [];
  /** The requests of finished files: the options and which files came along. */
  renders: { resultId: string; options: unknown; files: string[] }[] = [];
  /** The source type of new results. */
  source: string | null = null;
  /** How long a job stays in each state. */
  stepMs = 0;
  pictureOf: (id: string) => string = (id) => `/api/files/${id}`;
  /** The report on every picture. */
  verification: Verification = aVerification();
  /** The file of every finished cutout. */
  finished = new Blob(['finished']);

  private secrets = 0;

  private newSecret() {
    this.secrets += 1;
    return `whsec_secret-${this.secrets}`;
  }

  private changeWebhook(id: string, change: Partial<Webhook>) {
    this.webhooks = this.webhooks.map((one) => (one.id === id ? { ...one, ...change } : one));
    return this.webhooks.find((one) => one.id === id);
  }

  /** The job of each idempotency key; a repeat returns it, even if it has ended. */
  readonly jobOfKey = new Map<string, Job>();

  private nextId = 1;
  /** Jobs created through the API. Jobs created by a test do not advance. */
  private created = new Set<string>();
  private progressions = new Map<string, AsyncGenerator<Job>>();
  private freeFiles = new Map<string, Job>();

  private id(kind: string) {
    this.nextId += 1;
    return `${kind}-${this.nextId}`;
  }

  startJob(change: Partial<Job>): Job {
    const job = aJob({ id: this.id('job'), createdAt: new Date().toISOString(), ...change });
    this.jobs.push(job);
    return job;
  }

  /** Starts a job that advances, as if another tab had started it. */
  runJob(change: Partial<Job>): Job {
    const job = this.startJob(change);
    this.created.add(job.id);
    return job;
  }

  /** Lets a job run to its end. */
  finish(job: Job) {
    this.created.add(job.id);
  }

  private offerOf(name: ToolName) {
    return this.config.tools.find(({ tool }) => tool === name);
  }

  private modelOf({ tool, tier }: Job) {
    return this.offerOf(tool)?.models[tier === 'paid' ? 'paid' : 'free'];
  }

  private listOf(tool: ToolName): Result[] {
    return { 'remove-background': this.results, upscale: this.upscaled, 'magic-fix': this.fixed }[tool];
  }

  private resultOf(id: string) {
    return [...this.results, ...this.upscaled, ...this.fixed].find(({ imageId }) => imageId === id);
  }

  private imageFrom(result: Result): Image {
    const { imageId: resultId, sourceImageId, url, thumbnailUrl, width: x, height: y } = result;
    const tool = this.results.includes(result)
      ? 'remove-background'
      : this.upscaled.includes(result)
        ? 'upscale'
        : 'magic-fix';
    const madeFrom = { resultId, imageId: sourceImageId, tool } as const;
    return anImage({ id: this.id('image'), url, thumbnailUrl, x, y, madeFrom });
  }

  /** Pays an order at the payment provider. As in the API, the next status request grants the credits. */
  pay(sessionId: string) {
    this.paid.add(sessionId);
  }

  private paid = new Set<string>();

  private settle(sessionId: string) {
    const order = this.checkouts.find(({ session_id }) => session_id === sessionId);
    if (!order || order.fulfilled || !this.paid.has(sessionId)) return;
    Object.assign(order, { status: 'paid', fulfilled: true, email: this.user.email });
    this.user = { ...this.user, credits: this.user.credits + order.credits };
  }

  private paymentOf(order: Checkout): PaymentStatus {
    const { status, session_id, email, id, credits, fulfilled } = order;
    const isOpen = status === 'open';
    return {
      status: isOpen ? 'open' : status === 'expired' ? 'expired' : 'complete',
      customer_email: email,
      url: isOpen ? `http://pay.test/${session_id}` : null,
      checkout_id: id,
      credits,
      order_status: status,
      fulfilled,
    };
  }

  /** Advances a job through its states, storing and yielding each. */
  private async *progress(job: Job): AsyncGenerator<Job> {
    const pause = () => new Promise((resolve) => setTimeout(resolve, this.stepMs));
    const update = (change: Partial<Job>) => Object.assign(job, change);
    const isCanceled = () => job.state === 'cancelled';
    yield job;
    for (const position of [1, 0]) {
      await pause();
      if (isCanceled()) return yield job;
      yield update({ position, etaSeconds: 4 + position });
    }
    const count = (done: number) =>
      job.tool === 'upscale' ? { unit: 'tiles' as const, done, total: 4 } : null;
    for (const [stage, fraction, counted] of [
      ['decode', 0.1, null],
      ['infer', 0.35, count(1)],
      ['infer', 0.6, count(3)],
      ['encode', 0.9, null],
    ] as const) {
      await pause();
      if (isCanceled()) return yield job;
      yield update({
        state: 'running',
        position: null,
        progress: { stage, fraction, count: counted },
        etaSeconds: Math.round((1 - fraction) * 4),
      });
    }
    await pause();
    if (isCanceled()) return yield job;
    const imageId = this.id(job.tool === 'upscale' ? 'upscaled' : 'result');
    const prompt = job.tool === 'magic-fix' ? (this.prompts.at(-1) ?? '') : null;
    const source = this.images.find(({ id }) => id === job.imageId);
    const factor = job.factor ?? 1;
    const result = aResult({
      imageId,
      url: this.pictureOf(imageId),
      thumbnailUrl: this.pictureOf(imageId),
      sourceImageId: job.imageId ?? 'none',
      jobId: job.id,
      tier: job.tier,
      credits: job.cost,
      model: this.modelOf(job) ?? 'unknown',
      width: (source?.x ?? 1200) * factor,
      height: (source?.y ?? 800) * factor,
      factor: job.factor,
      prompt,
      mode: prompt === null ? null : 'remove',
      source: this.source,
      createdAt: new Date().toISOString(),
    });
    if (job.tier !== 'visitor') this.listOf(job.tool).push(result);
    this.user = { ...this.user, credits: this.user.credits - job.cost };
    yield update({ state: 'done', progress: null, results: [result], finishedAt: new Date().toISOString() });
  }

  /** Like the API: first the account, then whatever changes. Advances the jobs that were created through the API. */
  private accountStream(signal: AbortSignal) {
    const sent = new Map<string, string>();
    let user = JSON.stringify(this.user);
    const encoder = new TextEncoder();
    const isActive = ({ state }: Job) => state === 'queued' || state === 'running';
    const body = new ReadableStream({
      start: async (controller) => {
        const send = (name: string, data: string) =>
          controller.enqueue(encoder.encode(`event: ${name}\ndata: ${data}\n\n`));
        this.streams += 1;
        const active = this.jobs.filter(isActive);
        for (const job of active) sent.set(job.id, JSON.stringify(job));
        for (const { id } of this.jobs) if (!sent.has(id)) sent.set(id, 'ended');
        send('account', JSON.stringify({ user: this.user, jobs: active }));
        while (!signal.aborted && !this.isStreamBroken) {
          await new Promise((resolve) => setTimeout(resolve, Math.max(10, this.stepMs)));
          for (const job of this.jobs) {
            if (isActive(job)) await this.advance(job);
            const text = JSON.stringify(job);
            if (sent.get(job.id) === text || sent.get(job.id) === 'ended') continue;
            sent.set(job.id, isActive(job) ? text : 'ended');
            send('job', text);
          }
          if (user === JSON.stringify(this.user)) continue;
          user = JSON.stringify(this.user);
          send('user', user);
        }
        this.streams -= 1;
        controller.close();
      },
    });
    return new HttpResponse(body, { headers: { 'Content-Type': 'text/event-stream' } });
  }

  /** Runs a job that no stream advances to its end. */
  private async runAlone(job: Job) {
    for await (const _ of this.progress(job));
  }

  private async render(resultId: string, request: Request) {
    const form = await request.text();
    const options = JSON.parse(form.match(/name="options"\r\n\r\n([\s\S]*?)\r\n--/)?.[1] ?? 'null');
    const files = Array.from(form.matchAll(/name="(\w+)"; filename=/g), ([, name]) => name ?? '');
    this.renders.push({ resultId, options, files });
    return new HttpResponse(this.finished);
  }

  /** Advances a created job by one state, or to its end if states take no time. */
  private async advance(job: Job) {
    if (!this.created.has(job.id)) return;
    const progression = this.progressions.get(job.id) ?? this.progress(job);
    this.progressions.set(job.id, progression);
    let isFinished = false;
    do isFinished = (await progression.next()).done === true;
    while (this.stepMs === 0 && !isFinished);
  }

  handlers() {
    const problem = (status: number, detail: string, code: string | null = null) =>
      HttpResponse.json({ type: 'about:blank', title: detail, status, detail, code }, { status });
    const run =
      (tool: 'remove-background' | 'upscale', tier: 'paid' | 'free', factor: 2 | 4 | null = null) =>
      ({ request }: { request: Request }) => {
        const freeRun = tool === 'upscale' ? 'upscale' : 'removeBackground';
        const price = this.offerOf(tool)?.costs.find((cost) => cost.factor === factor)?.credits ?? 0;
        const cost = tier === 'paid' ? price : 0;
        const imageId = new URL(request.url).searchParams.get('imageId');
        const image = this.images.find(({ id }) => id === imageId);
        const key = request.headers.get('Idempotency-Key');
        this.idempotencyKeys.push(key ?? '');
        const earlier = key && this.jobOfKey.get(key);
        if (earlier) return HttpResponse.json(earlier, { status: 202 });
        if (!image) return problem(404, 'Image not found');
        if (this.user.credits < cost) return problem(402, 'Not enough credits');
        if (tier === 'free') {
          if (image.freeRuns[freeRun]) return problem(409, 'Free Exists');
          image.freeRuns = { ...image.freeRuns, [freeRun]: true };
        }
        const job = this.startJob({ tool, tier, factor, imageId, cost, position: 2, idempotencyKey: key });
        this.created.add(job.id);
        if (key) this.jobOfKey.set(key, job);
        return HttpResponse.json(job, { status: 202 });
      };
    const visitorRun =
      (tool: 'remove-background' | 'upscale', factor: 2 | null) =>
      async ({ request }: { request: Request }) => {
        const name = String((await request.text()).match(/filename="([^"]*)"/)?.[1]);
        // A repeat returns the run that the file already had, unless it was canceled.
        const known = this.freeFiles.get(`${tool} ${name}`);
        const earlier = known?.state === 'cancelled' ? undefined : known;
        const change = { tool, tier: 'visitor' as const, factor, imageId: null, cost: 0, position: 2 };
        const job = earlier ?? this.startJob(change);
        this.freeFiles.set(`${tool} ${name}`, job);
        if (!earlier) void this.runAlone(job);
        return HttpResponse.json(job, { status: 202 });
      };

    return [
      http.all('*/api/*', ({ request }) => {
        const { pathname, search } = new URL(request.url);
        this.calls.push(`${request.method} ${pathname}${search}`);
      }),
      http.get('*/api/config', () => HttpResponse.json(this.config)),
      http.get('*/api/user/get', () => HttpResponse.json(this.user)),
      http.get('*/api/user/storage', () => HttpResponse.json(this.storage)),
      http.get('*/api/images', ({ request }) =>
        HttpResponse.json(pageOf(this.images, new URL(request.url).searchParams)),
      ),
      http.post('*/api/images/upload', async ({ request }) => {
        const key = request.headers.get('Idempotency-Key');
        const stored = key && this.uploads.get(key);
        if (stored && this.images.includes(stored)) return HttpResponse.json(stored, { status: 201 });
        const id = this.id('image');
        const name = (await request.text()).match(/filename="([^"]*)"/)?.[1] ?? null;
        const [url, createdAt] = [this.pictureOf(id), new Date().toISOString()];
        const image = anImage({ id, name, url, thumbnailUrl: url, createdAt });
        this.images = [image, ...this.images];
        if (key) this.uploads.set(key, image);
        return HttpResponse.json(image, { status: 201 });
      }),
      http.post('*/api/images/delete', async ({ request }) => {
        const { imageIds } = (await request.json()) as { imageIds: string[] };
        const deleted = imageIds.filter((one) => this.images.some(({ id }) => id === one));
        this.images = this.images.filter(({ id }) => !deleted.includes(id));
        return HttpResponse.json({ deleted });
      }),
      http.post('*/api/images/archive', async ({ request }) => {
        this.archives.push(await request.json());
        return new HttpResponse('PK', { headers: { 'Content-Type': 'application/zip' } });
      }),
      http.post('*/api/images/from-result/:id', ({ params }) => {
        const result = this.resultOf(String(params.id));
        if (!result) return problem(404, 'Result not found');
        const earlier = this.images.find(({ madeFrom }) => madeFrom?.resultId === params.id);
        if (earlier) return HttpResponse.json(earlier);
        const image = this.imageFrom(result);
        this.images = [image, ...this.images];
        return HttpResponse.json(image, { status: 201 });
      }),
      http.get('*/api/results/:id/file', ({ params }) =>
        this.resultOf(String(params.id))
          ? new HttpResponse(new Blob(['file']))
          : problem(404, 'Result not found'),
      ),
      http.post('*/api/results/:id/render', ({ request, params }) =>
        this.resultOf(String(params.id))
          ? this.render(String(params.id), request)
          : problem(404, 'Result not found'),
      ),
      // Rendering a visitor's result needs only its signed URL.
      http.post('*/api/files/:id/render', ({ request, params }) => this.render(String(params.id), request)),
      http.get('*/api/files/:id', () => new HttpResponse(new Blob(['stored'], { type: 'image/png' }))),
      http.post('*/api/verify', () => HttpResponse.json(this.verification)),
      http.get('*/api/images/:id', ({ params }) => {
        const image = this.images.find(({ id }) => id === params.id);
        return image ? HttpResponse.json(image) : problem(404, 'Image not found');
      }),
      http.post('*/api/images/:id/select', async ({ request }) => {
        this.selections.push(await request.json());
        return new HttpResponse(this.mask, { headers: { 'Content-Type': 'image/png' } });
      }),
      http.post('*/api/upscale/sample', async ({ request }) => {
        const file = (await request.formData()).get('file') as File;
        this.samples.push({ query: new URL(request.url).search, file });
        return new HttpResponse(this.finished, { headers: { 'Content-Type': 'image/png' } });
      }),
      http.delete('*/api/images/:id', ({ params }) => {
        this.images = this.images.filter(({ id }) => id !== params.id);
        return new HttpResponse(null, { status: 204 });
      }),
      http.post('*/api/rmbg-images/remove-bg-ai', run('remove-background', 'paid')),
      http.post('*/api/rmbg-images/remove-bg-free', run('remove-background', 'free')),
      http.get('*/api/rmbg-images/:id', ({ params }) =>
        HttpResponse.json(this.results.filter(({ sourceImageId }) => sourceImageId === params.id)),
      ),
      http.delete('*/api/rmbg-images/:id', ({ params }) => {
        this.results = this.results.filter(({ imageId }) => imageId !== params.id);
        return new HttpResponse(null, { status: 204 });
      }),
      http.post('*/api/upscale/upscale-ai-2', run('upscale', 'paid', 2)),
      http.post('*/api/upscale/upscale-ai-4', run('upscale', 'paid', 4)),
      http.post('*/api/upscale/upscale-free', run('upscale', 'free', 2)),
      http.get('*/api/upscale/:id', ({ params }) =>
        HttpResponse.json(this.upscaled.filter(({ sourceImageId }) => sourceImageId === params.id)),
      ),
      http.delete('*/api/upscale/:id', ({ params }) => {
        this.upscaled = this.upscaled.filter(({ imageId }) => imageId !== params.id);
        return new HttpResponse(null, { status: 204 });
      }),
      http.post('*/api/magic-images/fix/:id', async ({ request, params }) => {
        const form = await request.text();
        const prompt = form.match(/name="prompt"\r\n\r\n([\s\S]*?)\r\n--/)?.[1] ?? '';
        const idempotencyKey = request.headers.get('Idempotency-Key');
        this.idempotencyKeys.push(idempotencyKey ?? '');
        if (!/name="file"; filename=/.test(form)) return problem(400, 'No mask');
        this.prompts.push(prompt);
        this.exactMasks.push(form.match(/name="exactMask"\r\n\r\n(\w+)/)?.[1] ?? null);
        if (prompt.includes('castle')) return problem(422, 'No castles here.', 'prompt_not_possible');
        if (this.user.credits < 8) return problem(402, 'Not enough credits');
        const imageId = String(params.id);
        const job = this.startJob({ tool: 'magic-fix', imageId, cost: 8, position: 2, idempotencyKey });
        this.created.add(job.id);
        return HttpResponse.json(job, { status: 202 });
      }),
      http.post('*/api/magic-images/meaning', async ({ request }) => {
        const { prompt } = (await request.json()) as { prompt: string };
        const verb = prompt.toLowerCase().split(' ')[0];
        const mode = ['remove', 'restore', 'enhance', 'add'].find((one) => one === verb) ?? 'edit';
        const isPossible = !prompt.includes('dragon');
        return HttpResponse.json({ mode, problem: isPossible ? null : 'No dragons here. Try “remove it”.' });
      }),
      http.get('*/api/magic-images/:id', ({ params }) =>
        HttpResponse.json(this.fixed.filter(({ sourceImageId }) => sourceImageId === params.id)),
      ),
      http.delete('*/api/magic-images/:id', ({ params }) => {
        this.fixed = this.fixed.filter(({ imageId }) => imageId !== params.id);
        return new HttpResponse(null, { status: 204 });
      }),
      http.get('*/api/jobs', async ({ request }) => {
        const imageId = new URL(request.url).searchParams.get('imageId');
        const isActive = (job: Job) => ['queued', 'running'].includes(job.state);
        // Without a stream, polling sees the jobs advance.
        if (this.isStreamBroken)
          await Promise.all(this.jobs.filter(isActive).map((job) => this.advance(job)));
        const active = this.jobs.filter((job) => isActive(job) && (!imageId || job.imageId === imageId));
        return HttpResponse.json({ jobs: active });
      }),
      http.get('*/api/jobs/:id', ({ params }) => {
        const job = this.jobs.find(({ id }) => id === params.id);
        return job ? HttpResponse.json(job) : problem(404, 'Job not found');
      }),
      http.delete('*/api/jobs/:id', ({ params }) => {
        const job = this.jobs.find(({ id }) => id === params.id);
        if (!job) return problem(404, 'Job not found');
        job.state = 'cancelled';
        return HttpResponse.json(job);
      }),
      http.get('*/api/events', ({ request }) => this.accountStream(request.signal)),
      http.post('*/api/payments/:action', ({ request, params }) => {
        const number = Number(String(params.action).match(/^create-checkout-session-([123])$/)?.[1]);
        const pack = this.config.packs.find((one) => one.number === number);
        this.idempotencyKeys.push(request.headers.get('Idempotency-Key') ?? '');
        if (!pack || !this.config.features.payments) {
          return problem(503, 'Failed to redirect to payment, please try again later');
        }
        const order = anOpenCheckout({
          id: this.id('checkout'),
          created_at: Math.floor(Date.now() / 1000),
          credits: pack.credits,
          total_amount: pack.amount,
          currency: pack.currency,
        });
        this.checkouts = [order, ...this.checkouts];
        return HttpResponse.json({ url: `http://pay.test/${order.session_id}` });
      }),
      http.get('*/api/payments/session-status/:id', ({ params }) => {
        this.settle(String(params.id));
        const order = this.checkouts.find(({ session_id }) => session_id === params.id);
        return order ? HttpResponse.json(this.paymentOf(order)) : problem(404, 'Payment not found');
      }),
      http.get('*/api/checkouts/', () => HttpResponse.json({ sessions: this.checkouts })),
      http.get('*/api/checkouts/:id', ({ params }) => {
        const checkout = this.checkouts.find(({ id }) => id === params.id);
        return checkout ? HttpResponse.json({ checkout }) : problem(404, 'Checkout not found');
      }),
      http.get('*/api/keys', () => HttpResponse.json({ keys: this.apiKeys })),
      http.post('*/api/keys', async ({ request }) => {
        const { name } = (await request.json()) as { name: string };
        const key = anApiKey({ id: this.id('key'), name, createdAt: new Date().toISOString() });
        this.apiKeys = [...this.apiKeys, key];
        return HttpResponse.json({ ...key, key: `${key.prefix}-the-whole-key` }, { status: 201 });
      }),
      http.delete('*/api/keys/:id', ({ params }) => {
        this.apiKeys = this.apiKeys.filter(({ id }) => id !== params.id);
        return new HttpResponse(null, { status: 204 });
      }),
      http.get('*/api/webhooks', () => HttpResponse.json({ webhooks: this.webhooks })),
      http.post('*/api/webhooks', async ({ request }) => {
        const wish = (await request.json()) as WebhookRequest;
        const made = aWebhook({ id: this.id('webhook'), ...(wish as Partial<Webhook>) });
        this.webhooks = [...this.webhooks, made];
        return HttpResponse.json({ ...made, secret: this.newSecret() }, { status: 201 });
      }),
      http.patch('*/api/webhooks/:id', async ({ params, request }) => {
        const change = (await request.json()) as Partial<Webhook>;
        return HttpResponse.json(this.changeWebhook(String(params.id), change));
      }),
      http.delete('*/api/webhooks/:id', ({ params }) => {
        this.webhooks = this.webhooks.filter(({ id }) => id !== params.id);
        return new HttpResponse(null, { status: 204 });
      }),
      http.post('*/api/webhooks/:id/secret', ({ params }) => {
        const change = { oldSecretUntil: '2026-11-21T10:00:00Z' };
        const changed = this.changeWebhook(String(params.id), change);
        return HttpResponse.json({ ...changed, secret: this.newSecret() });
      }),
      http.post('*/api/webhooks/:id/test', () => {
        const sent = aDelivery({
          id: this.id('delivery'),
          event: 'webhook.test',
          ...beingSent,
        });
        this.deliveries = [sent, ...this.deliveries];
        return HttpResponse.json({ deliveryId: sent.id }, { status: 202 });
      }),
      http.get('*/api/webhooks/:id/deliveries', () =>
        HttpResponse.json({ deliveries: this.deliveries, next: null }),
      ),
      http.post('*/api/webhooks/:id/deliveries/:deliveryId/resend', ({ params }) => {
        this.deliveries = this.deliveries.map((one) =>
          one.id === params.deliveryId ? { ...one, ...beingSent } : one,
        );
        return new HttpResponse(null, { status: 202 });
      }),
      http.delete('*/api/user', () => new HttpResponse(null, { status: 204 })),
      http.get('*/api/user/export', () => HttpResponse.json({ user: this.user })),
      http.post('*/api/free/remove-bg-fr', visitorRun('remove-background', null)),
      http.post('*/api/free/upscale-fr', visitorRun('upscale', 2)),
      http.get('*/api/free/upload', () => new HttpResponse(null, { status: 204 })),
    ];
  }
}
