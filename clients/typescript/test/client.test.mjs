// Tests the client: against a server that fails as told, and against a real one that scripts/checks/clients.py starts.
import assert from 'node:assert/strict';
import { createServer } from 'node:http';
import { text } from 'node:stream/consumers';
import { mock, test } from 'node:test';
import { Canceled, Refused, ResultDeleted, Retouch, Unreachable } from '../dist/client.js';

const facts = JSON.parse(process.env.RETOUCH_CLIENT_FACTS ?? 'null');
const real = { skip: facts ? false : 'scripts/test --only contract starts this with a server' };
const blob = (hex) => new Blob([Buffer.from(hex, 'hex')], { type: 'image/png' });
const bytes = async (file) => Buffer.from(await file.arrayBuffer());

test('every tool runs and is paid once', real, async () => {
  const retouch = new Retouch(facts.address, { key: facts.key });
  const before = (await retouch.account()).credits;
  const image = await retouch.upload(blob(facts.picture), 'a “photo”.png');
  assert.deepEqual([image.name, image.x, image.y], ['a “photo”.png', 64, 48]);
  const states = new Set();
  const onChange = (job) => states.add(job.state);
  const cutout = await retouch.removeBackground(image.id, { onChange, idempotencyKey: 'typescript' });
  assert(['queued', 'running'].some((state) => states.has(state)));
  const again = await retouch.removeBackground(image.id, { idempotencyKey: 'typescript' });
  assert.equal(again.imageId, cutout.imageId);
  const large = await retouch.upscale(image.id, 2);
  assert.deepEqual([large.width, large.height], [128, 96]);
  const fixed = await retouch.magicFix(image.id, { prompt: 'remove it', mask: blob(facts.mask), exact: true });
  assert.equal(fixed.mode, 'remove');
  assert.equal(before - (await retouch.account()).credits, 5 + 3 + 8);
  assert.equal((await bytes(await retouch.download(fixed))).subarray(1, 4).toString(), 'PNG');
  assert.equal((await bytes(await retouch.download(cutout, 'webp', 80))).subarray(8, 12).toString(), 'WEBP');
});

test('refusals have a status, a sentence and a code', real, async () => {
  const retouch = new Retouch(facts.address, { key: facts.key });
  const image = (await retouch.upload(blob(facts.picture))).id;
  for (const [status, code, run] of [
    [404, undefined, () => retouch.removeBackground('../nothing')],
    [422, 'prompt_required', () => retouch.magicFix(image, { prompt: ' ', mask: blob(facts.mask) })],
    [415, undefined, () => retouch.upload(new Blob(['hello']))],
    [401, undefined, () => new Retouch(facts.address, { key: 'rt_wrong' }).account()],
  ]) {
    await assert.rejects(run, (error) => {
      assert(error instanceof Refused && error.message);
      assert.deepEqual([error.status, error.code], [status, code]);
      return true;
    });
  }
});

// Answers with [status, headers, body] in turn, or hangs up.
async function serving(answers, run, options) {
  const requests = [];
  requests.bodies = [];
  const server = createServer(async (request, response) => {
    requests.push([request.method, request.url, request.headers['idempotency-key']]);
    requests.bodies.push(await text(request));
    const answer = answers.shift();
    if (!answer && requests.breaksOff) {
      response.writeHead(200, { 'Content-Length': 100 }).write('{');
      return setTimeout(() => request.socket.destroy(), 50);
    }
    if (!answer) return request.socket.destroy();
    const [status, headers, body] = answer;
    const isProblem = status >= 400 && typeof body === 'object';
    response.setHeader('Content-Type', isProblem ? 'application/problem+json' : 'application/json');
    response.writeHead(status, headers).end(typeof body === 'string' ? body : JSON.stringify(body));
  });
  await new Promise((resolve) => server.listen(0, '127.0.0.1', resolve));
  const address = `http://127.0.0.1:${server.address().port}/`;
  try {
    await run(new Retouch(address, { key: 'rt_key', retries: 2, ...options }), requests);
  } finally {
    server.close();
    server.closeAllConnections();
  }
}

const job = (state, more) => ({ id: '7', state, results: [], ...more });
const done = job('done', { results: [{ imageId: '9' }] });

test('a missing key is refused at once', () => {
  for (const options of [{}, { key: '' }]) {
    assert.throws(() => new Retouch('http://127.0.0.1', options), /key/);
  }
});

test('an empty key leaves the token', async () => {
  const sent = mock.method(globalThis, 'fetch', async () => new Response('{}'));
  await new Retouch('http://127.0.0.1', { key: '', token: 't' }).account();
  assert.equal(sent.mock.calls[0].arguments[1].headers.Authorization, 'Bearer t');
  mock.restoreAll();
});

test('an upload has the name of its file', () =>
  serving(Array(3).fill([200, {}, {}]), async (retouch, requests) => {
    await retouch.upload(new File(['1'], 'photo.jpg'));
    await retouch.upload(new File(['1'], 'photo.jpg'), 'other.jpg');
    await retouch.upload(new Blob(['1']));
    const names = requests.bodies.map((body) => body.match(/filename="(.*?)"/)?.[1]);
    assert.deepEqual(names, ['photo.jpg', 'other.jpg', 'picture']);
  }));

test('sending and receiving files may take a quarter of an hour', () =>
  serving(Array(4).fill([200, {}, {}]), async (retouch) => {
    const timeout = mock.method(AbortSignal, 'timeout');
    await retouch.account();
    await retouch.select('1', {});
    await retouch.upload(new Blob(['1']));
    await retouch.download({ imageId: '9' });
    mock.restoreAll();
    assert.deepEqual(
      timeout.mock.calls.map((call) => call.arguments[0]),
      [60_000, 60_000, 900_000, 900_000],
    );
  }));

test('a factor other than 2 and 4 is refused at once', () =>
  serving([], async (retouch, requests) => {
    await assert.rejects(retouch.upscale('1', 3), new RangeError('factor must be 2 or 4'));
    assert.equal(requests.length, 0);
  }));

test('a run is repeated with the same key', () =>
  serving(
    [undefined, [503, { 'Retry-After': '0' }, { detail: 'Busy.' }], [202, {}, done]],
    async (retouch, requests) => {
      assert.equal((await retouch.upscale('1', 4)).imageId, '9');
      assert.equal(requests.length, 3);
      assert.equal(new Set(requests.map(([, , key]) => key)).size, 1);
    },
  ));

test('an upload is repeated with the same key', () =>
  serving([undefined, [503, { 'Retry-After': '0' }, {}], [201, {}, { id: '1' }]], async (retouch, requests) => {
    assert.equal((await retouch.upload(new Blob(['picture']))).id, '1');
    assert.equal(requests.length, 3);
    assert.equal(new Set(requests.map(([, , key]) => key)).size, 1);
    assert.ok(requests[0][2]);
  }));

test('a request without a key is not repeated after a lost answer', () =>
  serving([undefined], async (retouch) => {
    await assert.rejects(retouch.request('POST', '/api/images/delete'), Unreachable);
  }));

test('a request without a key is repeated only if the server is busy', () =>
  serving(
    [
      [503, { 'Retry-After': '0' }, {}],
      [504, {}, '<html>'],
    ],
    async (retouch, requests) => {
      await assert.rejects(retouch.request('POST', '/api/images/delete'), { status: 504 });
      assert.equal(requests.length, 2);
    },
  ));

test('a proxy does not know what its server has done, so a request without a key is not repeated', () =>
  serving([[503, { 'Retry-After': '0' }, '<html>']], async (retouch) => {
    await assert.rejects(retouch.request('POST', '/api/images/delete'), { status: 503, isOfProxy: true });
  }));

test('a body that breaks off is read again', () =>
  serving([undefined, [200, {}, { credits: 7 }]], async (retouch, requests) => {
    requests.breaksOff = true;
    assert.equal((await retouch.account()).credits, 7);
    assert.equal(requests.length, 2);
  }));

test('a refusal is not repeated unless it asks for it', () =>
  serving([[402, {}, { detail: 'Not enough credits' }]], async (retouch) => {
    await assert.rejects(retouch.removeBackground('1'), /Not enough credits/);
  }));

test('an answer that is not JSON is a refusal all the same', () =>
  serving(Array(3).fill([502, { 'Retry-After': '0' }, '<html>']), async (retouch) => {
    await assert.rejects(retouch.account(), (error) => error instanceof Refused && error.status === 502);
  }));

test('a run that takes too long is canceled, unless it has just ended', () =>
  serving(
    [
      [202, {}, job('queued')],
      [200, {}, job('cancelled')],
      [202, {}, job('running')],
      [200, {}, done],
    ],
    async (retouch, requests) => {
      await assert.rejects(retouch.removeBackground('1', { patience: 0 }), Canceled);
      assert.deepEqual(requests.at(-1)?.slice(0, 2), ['DELETE', '/api/jobs/7']);
      assert.equal((await retouch.removeBackground('1', { patience: 0 })).imageId, '9');
    },
  ));

test('a signal cancels the run', () =>
  serving(
    [
      [202, {}, job('queued')],
      [200, {}, job('cancelled')],
    ],
    async (retouch, requests) => {
      const signal = AbortSignal.timeout(50);
      await assert.rejects(retouch.removeBackground('1', { signal }), { name: 'TimeoutError' });
      assert.equal(requests.at(-1)?.[0], 'DELETE');
    },
  ));

const busy = [503, { 'Retry-After': '60' }, { detail: 'Busy.' }];

test('a pause that outlasts the patience is not begun', { timeout: 5000 }, () =>
  serving([busy], async (retouch, requests) => {
    await assert.rejects(retouch.removeBackground('1', { patience: 5000 }), /Busy\./);
    assert.equal(requests.length, 1);
  }),
);

test('an aborted call submits no run', { timeout: 5000 }, () =>
  serving([busy], async (retouch, requests) => {
    const signal = AbortSignal.timeout(50);
    await assert.rejects(retouch.removeBackground('1', { signal }), { name: 'TimeoutError' });
    assert.equal(requests.length, 1);
  }),
);

test('a call that is aborted before a refusal arrives is not repeated', { timeout: 5000 }, () => {
  const controller = new AbortController();
  const shift = () => {
    controller.abort();
    return busy;
  };
  return serving({ shift }, async (retouch, requests) => {
    await assert.rejects(retouch.removeBackground('1', { signal: controller.signal }), { name: 'AbortError' });
    assert.equal(requests.length, 1);
  });
});

const unknown = [500, {}, { detail: 'Who knows?', code: 'outcome_unknown' }];
for (const lost of [undefined, [503, { 'Retry-After': '1' }, '<html>'], unknown]) {
  test(`a submission that is lost (${lost?.[0] ?? 'no answer'}) is repeated beyond the patience, to cancel it`, () =>
    serving(
      [lost, [504, { 'Retry-After': '0' }, {}], [202, {}, job('queued')], [200, {}, job('cancelled')]],
      async (retouch, requests) => {
        await assert.rejects(retouch.removeBackground('1', { patience: 0 }), Canceled);
        assert.equal(requests.at(-1)?.[0], 'DELETE');
      },
    ));
}

test('a lost submission is repeated after an abort, to cancel it', () =>
  serving([undefined, [202, {}, job('queued')], [200, {}, job('cancelled')]], async (retouch, requests) => {
    const signal = AbortSignal.timeout(50);
    await assert.rejects(retouch.removeBackground('1', { signal }), { name: 'TimeoutError' });
    assert.equal(requests.at(-1)?.[0], 'DELETE');
  }));

test('a run outlasts an outage', () =>
  serving(
    [
      [202, {}, job('running')],
      undefined,
      [503, {}, { detail: 'Busy.' }],
      [504, {}, '<html>'],
      undefined,
      [200, {}, done],
    ],
    async (retouch) => {
      assert.equal((await retouch.removeBackground('1')).imageId, '9');
    },
    { retries: 0 },
  ));

const expired = [401, {}, { detail: 'Expired.' }];

test('a run that cannot be followed is canceled', () =>
  serving([[202, {}, job('running')], expired, [200, {}, job('cancelled')]], async (retouch, requests) => {
    const error = await retouch.removeBackground('1').catch((error) => error);
    assert.deepEqual([error.message, error.jobId, error.idempotencyKey], ['Expired.', '7', requests[0][2]]);
    assert.deepEqual(requests.at(-1)?.slice(0, 2), ['DELETE', '/api/jobs/7']);
  }));

test('a run that cannot be canceled either says which it is', () =>
  serving([[202, {}, job('running')], expired, [403, {}, {}]], async (retouch) => {
    await assert.rejects(retouch.removeBackground('1'), { message: 'Expired.', jobId: '7' });
  }));

test('a mistake of the caller cancels the run', () =>
  serving(
    [
      [202, {}, job('running')],
      [200, {}, job('cancelled')],
    ],
    async (retouch, requests) => {
      const onChange = () => {
        throw new RangeError('A mistake.');
      };
      await assert.rejects(retouch.removeBackground('1', { onChange }), RangeError);
      assert.deepEqual(requests.at(-1)?.slice(0, 2), ['DELETE', '/api/jobs/7']);
    },
  ));

test('a lost submission tells its key', () =>
  serving(
    [undefined],
    async (retouch, requests) => {
      const error = await retouch.removeBackground('1').catch((error) => error);
      assert(error instanceof Unreachable);
      assert.deepEqual([error.jobId, error.idempotencyKey], [undefined, requests[0][2]]);
    },
    { retries: 0 },
  ));

test('a deleted result does not count as a failure', () =>
  serving([[202, {}, job('done')]], async (retouch) => {
    const run = retouch.removeBackground('1', { idempotencyKey: 'mine' });
    await assert.rejects(run, (error) => error instanceof ResultDeleted && /the run was paid/.test(error.message));
  }));
