import { act, createEvent, fireEvent, screen, within } from '@testing-library/react';
import userEvent from '@testing-library/user-event';
import { delay, HttpResponse, http } from 'msw';
import { describe, expect, test } from 'vitest';
import type { Verification } from '@/lib/api-types';
import { AI_MADE_PARTS, aClaim, aConfig, anImage, aResult, aVerification } from '@/testing/builders';
import { MockApi } from '@/testing/mock-api';
import { renderApp } from '@/testing/render-app';
import { server } from '@/testing/server';

const aFile = (name = 'photo.png', type = 'image/png') => new File(['bytes'], name, { type });

async function choose(file: File) {
  // A browser's own filter by type is only a suggestion to the user.
  await userEvent.upload(await screen.findByLabelText('Image file'), file, { applyAccept: false });
}

/** Opens the page and chooses a picture, of which the API says this. */
async function verified(change: Partial<Verification>) {
  const api = Object.assign(new MockApi(), { verification: aVerification(change) });
  const app = renderApp('/verify', { api });
  await choose(aFile());
  return { ...app, verdict: await screen.findByRole('heading', { level: 2, name: /^(No|These|Valid)/ }) };
}

const generated = { source: AI_MADE_PARTS, isSourceClaimed: true, isGenerated: true };
const theirs = { name: 'Camera 7', organization: 'Elsewhere GmbH', time: null, isOurs: false };

describe('the page Verify a picture', () => {
  test('is linked at the foot of every page, and explains itself', async () => {
    renderApp('/terms');
    const footer = await screen.findByRole('contentinfo');
    await userEvent.click(within(footer).getByRole('link', { name: 'Verify a picture' }));
    expect(await screen.findByRole('heading', { level: 1, name: 'Verify a picture' })).toBeVisible();
    expect(screen.getByText(/never store it/)).toBeVisible();
    expect(screen.getByRole('heading', { name: 'What are Content Credentials?' })).toBeVisible();
    expect(screen.getByText('JPG, PNG, WebP, HEIC or AVIF, up to 25 MB')).toBeVisible();
  });

  test('says what a result of this server says', async () => {
    const { verdict } = await verified({ ...generated, state: 'trusted', claim: aClaim() });
    expect(verdict).toHaveTextContent('Valid, signed by this server');
    expect(screen.getByRole('region', { name: 'Result' })).toHaveFocus();
    expect(screen.getAllByText('AI made parts of this picture')).toHaveLength(2);
    expect(screen.getByText('The signed credentials say so.')).toBeVisible();
    expect(screen.getByText('Signed by').nextSibling).toHaveTextContent(
      'Retouch, Example Ltd · the certificate of this server',
    );
    expect(screen.getByText('Signed on').nextSibling).toHaveTextContent('Nov 20, 2026');
    expect(screen.getByText(/Repainted an area from a description/)).toBeVisible();
    expect(screen.getByText('Uploaded picture')).toBeVisible();
    expect(screen.getByText('It has no Content Credentials of its own.')).toBeVisible();
  });

  test.each<[string, Partial<Verification>, string]>([
    ['no credentials', {}, 'No Content Credentials'],
    ['a damaged manifest', { state: 'invalid', claim: aClaim() }, 'These Content Credentials are not valid'],
    [
      'an unknown signer',
      { state: 'valid', claim: aClaim({ signature: theirs }) },
      'Valid, but the signer is unknown here',
    ],
    [
      'a trusted signer',
      { state: 'trusted', claim: aClaim({ signature: theirs }) },
      'Valid, by a trusted signer',
    ],
    // An operator's certificate may be from an authority that this server does not trust.
    ['our own certificate', { state: 'valid', claim: aClaim() }, 'Valid, signed by this server'],
  ])('tells %s apart', async (_, change, title) => {
    const { verdict } = await verified(change);
    expect(verdict).toHaveTextContent(title);
    // A screen reader hears it, too.
    expect(screen.getAllByText(title).some((text) => text.closest('[aria-live]'))).toBe(true);
  });

  test('says that a source stands only in metadata that anybody can change', async () => {
    const { verdict } = await verified({ ...generated, isSourceClaimed: false });
    expect(verdict).toHaveTextContent('No Content Credentials');
    expect(screen.getByText('AI made parts of this picture')).toBeVisible();
    expect(screen.getByText(/^Only the file’s XMP metadata says so/)).toBeVisible();
  });

  test('names problems in words and by code, and shows an unknown one as it came', async () => {
    await verified({
      ...generated,
      state: 'invalid',
      claim: aClaim(),
      problems: [
        { code: 'assertion.dataHash.mismatch', explanation: 'asset hash error' },
        { code: 'acme.novelty', explanation: 'nobody knows this' },
        // A name of every object.
        { code: 'constructor', explanation: null },
      ],
    });
    const problems = within(screen.getByRole('list', { name: 'Problems' })).getAllByRole('listitem');
    expect(problems.map((problem) => problem.textContent)).toEqual([
      'The picture was changed after it was signed, or is another one.assertion.dataHash.mismatch',
      'nobody knows thisacme.novelty',
      'Another problem.constructor',
    ]);
    expect(screen.getByText('The credentials say so, but they are not valid.')).toBeVisible();
    // Its certificate is public, so anybody can copy it.
    expect(screen.queryByText(/certificate of this server/)).toBeNull();
  });

  test('shows what the pictures that went in say themselves', async () => {
    const problems = [{ code: 'assertion.dataHash.mismatch', explanation: null }];
    const innermost = aClaim({ generator: 'Innermost', signature: theirs, ingredients: [] });
    const inner = aClaim({
      generator: 'Inner',
      ingredients: [{ title: 'first.jpg', isParent: true, claim: innermost, problems }],
    });
    await verified({
      ...generated,
      state: 'trusted',
      claim: aClaim({
        ingredients: [
          { title: 'second.jpg', isParent: true, claim: inner, problems: [] },
          { title: null, isParent: false, claim: null, problems: [] },
        ],
      }),
    });
    expect(screen.getByText('Inner')).not.toBeVisible();
    await userEvent.click(screen.getAllByText('Its own credentials')[0] as HTMLElement);
    expect(screen.getByText('Inner')).toBeVisible();
    expect(screen.getByText('The picture was changed after it was signed, or is another one.')).toBeVisible();
    expect(screen.getByText('Innermost')).not.toBeVisible();
    await userEvent.click(screen.getAllByText('Its own credentials')[1] as HTMLElement);
    expect(screen.getByText('Innermost')).toBeVisible();
    expect(screen.getByText('A picture without a name')).toBeVisible();
    expect(screen.getByText('A picture that was added')).toBeVisible();
  });

  test('shows texts of the file as texts, without what could deceive', async () => {
    const claim = aClaim({
      generator: '<img src=x onerror=alert(1)>',
      signature: {
        name: 'Adobe\u202egpj.exe\u200b',
        organization: 'Adobe\u202egpj.exe\u200b',
        time: 'soon',
        isOurs: false,
      },
      actions: [
        { action: 'acme.melted', description: '{name} #', agent: null, when: 'never', source: 'urn:x/Odd' },
      ],
      ingredients: [],
    });
    const { container } = await verified({ state: 'valid', claim });
    expect(screen.getByText('<img src=x onerror=alert(1)>')).toBeVisible();
    expect(container.querySelector('[src=x]')).toBeNull();
    const signer = screen.getByText('Adobegpj.exe');
    expect(signer.tagName).toBe('BDI');
    for (const text of ['soon', 'never', 'acme.melted', '{name} #', 'Odd']) {
      expect(screen.getByText(text)).toBeVisible();
    }
  });
});

describe('another picture', () => {
  test('replaces the first one, also if it is dropped or pasted anywhere', async () => {
    const { api } = await verified({ ...generated, state: 'trusted', claim: aClaim() });
    api.verification = aVerification();
    await choose(aFile('second.webp', 'image/webp'));
    expect(await screen.findByRole('heading', { name: 'No Content Credentials' })).toBeVisible();
    expect(screen.queryByText('AI made parts of this picture')).toBeNull();

    api.verification = aVerification({ state: 'invalid' });
    const dataTransfer = { types: ['Files'], files: [aFile('third.jpg', 'image/jpeg')] };
    fireEvent(document.body, createEvent.drop(document.body, { dataTransfer }));
    expect(
      await screen.findByRole('heading', { name: 'These Content Credentials are not valid' }),
    ).toBeVisible();

    api.verification = aVerification();
    fireEvent.paste(document.body, { clipboardData: { files: [aFile('fourth.png')] } });
    expect(await screen.findByRole('heading', { name: 'No Content Credentials' })).toBeVisible();
    expect(screen.getByText('fourth.png')).toBeVisible();
    expect(api.calls.filter((call) => call === 'POST /api/verify')).toHaveLength(4);
  });

  test('does not wait for a slow one', async () => {
    renderApp('/verify');
    server.use(http.post('*/api/verify', () => delay('infinite'), { once: true }));
    await choose(aFile('slow.png'));
    expect(await screen.findByText('Reading the picture…')).toBeVisible();
    await choose(aFile('fast.png'));
    expect(await screen.findByRole('heading', { name: 'No Content Credentials' })).toBeVisible();
    expect(screen.getByText('fast.png')).toBeVisible();
    expect(screen.queryByText('slow.png')).toBeNull();
  });
});

describe('a picture of a phone', () => {
  test('is verified whatever its type is called', async () => {
    const { api } = renderApp('/verify');
    await choose(aFile('photo.HEIC', ''));
    expect(await screen.findByRole('heading', { name: 'No Content Credentials' })).toBeVisible();
    expect(api.calls).toContain('POST /api/verify');
  });
});

describe('a picture that cannot be verified', () => {
  test('of a wrong type is refused without sending it', async () => {
    const { api } = renderApp('/verify');
    await choose(aFile('drawing.gif', 'image/gif'));
    expect(await screen.findByRole('alert')).toHaveTextContent('Choose a JPG, PNG, WebP, HEIC or AVIF file.');
    expect(screen.queryByRole('button', { name: 'Try again' })).toBeNull();
    expect(api.calls).not.toContain('POST /api/verify');
    await choose(aFile());
    expect(await screen.findByRole('heading', { name: 'No Content Credentials' })).toBeVisible();
    expect(screen.queryByRole('alert')).toBeNull();
  });

  test('and is too large is refused without sending it', async () => {
    const { limits } = aConfig();
    const config = aConfig({ limits: { ...limits, maxUploadBytes: 2000 } });
    const { api } = renderApp('/verify', { api: Object.assign(new MockApi(), { config }) });
    await choose(new File([new Uint8Array(3000)], 'photo.jpg', { type: 'image/jpeg' }));
    expect(await screen.findByRole('alert')).toHaveTextContent(
      'This file is 3 kB. You can upload up to 2 kB.',
    );
    expect(api.calls).not.toContain('POST /api/verify');
  });

  const problem = (status: number, detail: string) => () => HttpResponse.json({ detail }, { status });
  test.each([
    ['without a connection', () => HttpResponse.error(), 'The connection was lost. Please try again.'],
    [
      'too often',
      problem(429, 'Too many uploads from your network. Try again in 7 minutes, or sign up.'),
      'Try again in 7 minutes',
    ],
    [
      'while the server is busy',
      problem(503, 'The service is busy. Please try again in a moment.'),
      'is busy',
    ],
    ['because it is none', problem(415, "We can't read this file as an image."), "can't read this file"],
  ])('%s says why, and can be tried again', async (_, answer, text) => {
    renderApp('/verify');
    server.use(http.post('*/api/verify', answer, { once: true }));
    await choose(aFile());
    expect(await screen.findByRole('alert')).toHaveTextContent(text);
    await userEvent.click(screen.getByRole('button', { name: 'Try again' }));
    expect(await screen.findByRole('heading', { name: 'No Content Credentials' })).toBeVisible();
    // The button has gone.
    expect(screen.getByRole('region', { name: 'Result' })).toHaveFocus();
  });
});

describe('a result that says how it was made', () => {
  test('says so next to its download, and is verified at a click', async () => {
    const api = Object.assign(new MockApi(), {
      images: [anImage()],
      results: [aResult({ source: AI_MADE_PARTS })],
      verification: aVerification({ ...generated, state: 'trusted', claim: aClaim() }),
    });
    renderApp('/remove-background/image-1', { api, signedIn: true });
    expect(await screen.findByText(/^This file says that AI made parts of the picture\./)).toBeVisible();
    await userEvent.click(screen.getByRole('link', { name: 'See what it says' }));
    expect(await screen.findByRole('heading', { name: 'Valid, signed by this server' })).toBeVisible();
    expect(api.calls).toContain('GET /api/files/result-1');
    expect(screen.getByText('downloaded_image.png')).toBeVisible();
  });

  test('that is gone says so, and takes another picture', async () => {
    const { router } = renderApp('/terms');
    server.use(
      http.get('*/api/files/:id', () => HttpResponse.json({ detail: 'File not found' }, { status: 404 })),
    );
    await act(() =>
      router.navigate('/verify', { state: { picture: { url: '/api/files/gone', name: 'x.png' } } }),
    );
    expect(await screen.findByRole('alert')).toHaveTextContent('File not found');
    await choose(aFile());
    expect(await screen.findByRole('heading', { name: 'No Content Credentials' })).toBeVisible();
  });

  test('nothing is said of a result without marks', async () => {
    const api = Object.assign(new MockApi(), { images: [anImage()], results: [aResult()] });
    renderApp('/remove-background/image-1', { api, signedIn: true });
    await screen.findByRole('button', { name: 'Download' });
    // The text has code of its own, which would be shown by now.
    await act(async () => {
      await import('@/features/results/source-note-text');
    });
    expect(screen.queryByText(/^This file says/)).toBeNull();
  });
});
