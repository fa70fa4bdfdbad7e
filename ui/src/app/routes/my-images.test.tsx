import { fireEvent, screen, waitFor, within } from '@testing-library/react';
import userEvent from '@testing-library/user-event';
import { delay, HttpResponse, http } from 'msw';
import { beforeEach, describe, expect, test, vi } from 'vitest';
import type { Image } from '@/lib/api-types';
import { saveFile } from '@/lib/download';
import { breakGet } from '@/testing/break-get';
import { anImage } from '@/testing/builders';
import { MockApi } from '@/testing/mock-api';
import { renderApp } from '@/testing/render-app';
import { server } from '@/testing/server';
import { aSignInPage } from '@/testing/sign-in-page';

vi.mock('@/lib/download', async (load) => ({ ...(await load<object>()), saveFile: vi.fn() }));

const named = (...names: string[]): Image[] =>
  names.map((name, index) =>
    anImage({ id: name, name, createdAt: `2026-11-20T10:00:0${9 - index}Z`, sizeBytes: 1_000 * (index + 1) }),
  );

function open(images: Image[], path = '/images') {
  const api = Object.assign(new MockApi(), { images });
  return { ...renderApp(path, { api, signedIn: true }), api };
}

const shown = () =>
  screen.queryAllByRole('link', { name: /^Select / }).map((link) => link.getAttribute('href'));
const box = (name: string) => screen.findByRole('checkbox', { name: `Add ${name} to the selection` });
const selected = () => screen.queryAllByRole('checkbox', { checked: true }).map((one) => one.closest('li'));
const press = async (name: string | RegExp) => userEvent.click(await screen.findByRole('button', { name }));
const confirm = async () =>
  userEvent.click(within(await screen.findByRole('alertdialog')).getByRole('button', { name: 'Delete' }));
const expectShown = (...names: string[]) =>
  waitFor(() => expect(shown()).toEqual(names.map((name) => `/images/${name}`)));

beforeEach(() => vi.mocked(saveFile).mockReset());

describe('names', () => {
  test('name the picture, its link and its checkbox', async () => {
    open(named('cat.jpg'));
    expect(await screen.findByRole('img', { name: 'cat.jpg' })).toBeVisible();
    expect(screen.getByText('cat.jpg')).toBeVisible();
    expect(screen.getByRole('link', { name: 'Select cat.jpg' })).toBeVisible();
    expect(await box('cat.jpg')).not.toBeChecked();
  });

  test('an image from a result says so, and its page links to the source', async () => {
    const [source, made] = named('cat.jpg', 'cat (cut out).png') as [Image, Image];
    made.madeFrom = { resultId: 'result-1', imageId: 'cat.jpg', tool: 'remove-background' };
    const { router } = open([made, source]);
    expect(await screen.findByText('Made from a cutout')).toBeVisible();
    await userEvent.click(screen.getByRole('link', { name: 'Select cat (cut out).png' }));
    expect(await screen.findByText(/^Made from a cutout of/)).toBeVisible();
    await userEvent.click(screen.getByRole('link', { name: 'this image' }));
    await waitFor(() => expect(router.state.location.pathname).toBe('/images/cat.jpg'));
  });

  test('a page shows the preview of a large image', async () => {
    open([anImage({ previewUrl: '/api/files/preview' })], '/images/image-1');
    expect(await screen.findByRole('img', { name: /^Image of/ })).toHaveAttribute(
      'src',
      '/api/files/preview',
    );
  });
});

describe('finding images', () => {
  const pets = () => named('cat.jpg', 'Dog.png', 'cat 2.jpg');

  test('searches by name while typing, and keeps the search in the address', async () => {
    const { router } = open(pets());
    await screen.findByText('3 images');
    await userEvent.type(screen.getByRole('searchbox', { name: 'Search by name' }), 'CAT');
    await expectShown('cat.jpg', 'cat 2.jpg');
    expect(screen.getByText('2 images match “CAT”')).toBeVisible();
    expect(router.state.location.search).toBe('?search=CAT');
  });

  test('a search that fails keeps the field with the text and the focus, and the order', async () => {
    open(pets(), '/images?sort=oldest');
    await screen.findByText('3 images');
    const repair = breakGet('*/api/images');
    await userEvent.type(screen.getByRole('searchbox'), 'do');
    expect(await screen.findByText('Failed to load images. Please try again later')).toBeVisible();
    expect(screen.getByRole('searchbox')).toHaveValue('do');
    expect(screen.getByRole('searchbox')).toHaveFocus();
    expect(screen.getByRole('combobox', { name: 'Sort by' })).toHaveValue('oldest');
    repair();
    await userEvent.keyboard('g');
    await expectShown('Dog.png');
    expect(screen.queryByText('Failed to load images. Please try again later')).toBeNull();
  });

  test('searches without NUL characters, which the API refuses', async () => {
    const { api } = open(pets());
    await screen.findByText('3 images');
    fireEvent.change(screen.getByRole('searchbox'), { target: { value: 'do\0g' } });
    await expectShown('Dog.png');
    expect(api.calls.at(-1)).toMatch(/search=dog/);
  });

  test('says that nothing matches, and shows all images again', async () => {
    open(pets(), '/images?search=zebra');
    expect(await screen.findByText('No images match “zebra”')).toBeVisible();
    expect(screen.queryByText('No images to show')).toBeNull();
    await press('Show all images');
    await expectShown('cat.jpg', 'Dog.png', 'cat 2.jpg');
    expect(screen.getByRole('searchbox')).toHaveValue('');
  });

  test.each([
    ['Newest', ['cat.jpg', 'Dog.png', 'cat 2.jpg']],
    ['Oldest', ['cat 2.jpg', 'Dog.png', 'cat.jpg']],
    ['Name', ['cat 2.jpg', 'cat.jpg', 'Dog.png']],
    ['Largest', ['cat 2.jpg', 'Dog.png', 'cat.jpg']],
  ])('sorts by %s', async (order, names) => {
    open(pets());
    await userEvent.selectOptions(await screen.findByRole('combobox', { name: 'Sort by' }), order);
    await expectShown(...names);
  });

  test('loads the next page on request, and again after a failure', async () => {
    const many = Array.from({ length: 60 }, (_, index) => `photo-${index}.jpg`);
    open(named(...many));
    expect(await screen.findByText('48 of 60 shown')).toBeVisible();
    expect(screen.getByText('60 images')).toBeVisible();
    server.use(http.get('*/api/images', () => new HttpResponse(null, { status: 500 }), { once: true }));
    await press('Show more');
    await press('Try again');
    await waitFor(() => expect(shown()).toHaveLength(60));
    expect(screen.queryByRole('button', { name: 'Show more' })).toBeNull();
  });
});

describe('selecting several images', () => {
  const names = ['a.jpg', 'b.jpg', 'c.jpg', 'd.jpg', 'e.jpg'];
  const expectSelected = (...expected: string[]) =>
    expect(
      selected().map((card) =>
        within(card as HTMLElement)
          .getByRole('img')
          .getAttribute('alt'),
      ),
    ).toEqual(expected);

  test('by clicks, and by Shift-click as a range', async () => {
    open(named(...names));
    await userEvent.click(await box('b.jpg'));
    expect(await screen.findByText('1 selected')).toBeVisible();
    fireEvent.click(await box('d.jpg'), { shiftKey: true });
    expectSelected('b.jpg', 'c.jpg', 'd.jpg');
    await userEvent.click(await box('c.jpg'));
    expectSelected('b.jpg', 'd.jpg');
  });

  test('by Shift and the arrow keys, forth and back', async () => {
    open(named(...names));
    (await box('b.jpg')).focus();
    await userEvent.keyboard('{Shift>}{ArrowRight}{ArrowRight}{/Shift}');
    expectSelected('b.jpg', 'c.jpg', 'd.jpg');
    expect(await box('d.jpg')).toHaveFocus();
    await userEvent.keyboard('{Shift>}{ArrowLeft}{/Shift}');
    expectSelected('b.jpg', 'c.jpg');
    await userEvent.keyboard('{ArrowRight}');
    expectSelected('b.jpg', 'c.jpg');
  });

  test('all of them, those of further pages too; Escape ends it', async () => {
    const many = Array.from({ length: 60 }, (_, index) => `photo-${index}.jpg`);
    open(named(...many));
    await userEvent.click(await box('photo-3.jpg'));
    await press('Select all');
    expect(await screen.findByText('60 selected')).toBeVisible();
    expect(screen.queryByRole('button', { name: 'Select all' })).toBeNull();
    await userEvent.keyboard('{Escape}');
    expect(selected()).toEqual([]);
    expect(screen.getByRole('searchbox')).toBeVisible();
  });

  test('stays ended if that was while the other pages were loading', async () => {
    open(named(...Array.from({ length: 60 }, (_, index) => `photo-${index}.jpg`)));
    await userEvent.click(await box('photo-3.jpg'));
    let load = () => {};
    const loading = new Promise<void>((resolve) => {
      load = resolve;
    });
    server.use(http.get('*/api/images', () => loading.then(() => undefined), { once: true }));
    await press('Select all');
    await userEvent.keyboard('{Escape}');
    load();
    await waitFor(() => expect(shown()).toHaveLength(60));
    expect(selected()).toEqual([]);
  });

  test('ends when the search changes, so that nothing hidden is deleted', async () => {
    const { router } = open(named(...names));
    await userEvent.click(await box('a.jpg'));
    await press('End selection');
    await userEvent.type(screen.getByRole('searchbox'), 'b');
    await expectShown('b.jpg');
    await waitFor(() => expect(router.state.location.search).toBe('?search=b'));
    await userEvent.clear(screen.getByRole('searchbox'));
    await waitFor(() => expect(shown()).toHaveLength(5));
    expect(selected()).toEqual([]);
  });
});

describe('deleting several images', () => {
  const start = async () => {
    const view = open(named('a.jpg', 'b.jpg', 'c.jpg'));
    await userEvent.click(await box('a.jpg'));
    await userEvent.click(await box('c.jpg'));
    return view;
  };

  test('asks once and deletes them in one call', async () => {
    const { api } = await start();
    await press('Delete');
    expect(await screen.findByText('Delete 2 images and all their results?')).toBeVisible();
    await confirm();
    await expectShown('b.jpg');
    expect(await screen.findByText('1 image')).toBeVisible();
    await waitFor(() => expect(api.images.map(({ id }) => id)).toEqual(['b.jpg']));
    expect(api.calls.filter((call) => call === 'POST /api/images/delete')).toHaveLength(1);
    expect(screen.getByRole('heading', { name: 'Your images' })).toHaveFocus();
  });

  test('hides them at once, and brings them back selected if that fails', async () => {
    await start();
    let fail = () => {};
    const failed = new Promise<void>((resolve) => {
      fail = resolve;
    });
    server.use(
      http.post('*/api/images/delete', async () => {
        await failed;
        return new HttpResponse(null, { status: 500 });
      }),
    );
    await press('Delete');
    await confirm();
    await expectShown('b.jpg');
    fail();
    expect(await screen.findByText('Failed to delete 2 of 2 images, try again later')).toBeVisible();
    await expectShown('a.jpg', 'b.jpg', 'c.jpg');
    expect(screen.getByText('2 selected')).toBeVisible();
  });

  test('says how many were not there', async () => {
    const { api } = await start();
    // Deleted in another tab.
    api.images = api.images.filter(({ id }) => id !== 'c.jpg');
    await press('Delete');
    await confirm();
    expect(await screen.findByText('Deleted 1 of 2 images. The other one was not found.')).toBeVisible();
    await expectShown('b.jpg');
  });
});

describe('downloading several images', () => {
  const start = async () => {
    const view = open(named('a.jpg', 'b.jpg'));
    await userEvent.click(await box('a.jpg'));
    await userEvent.click(await box('b.jpg'));
    return view;
  };

  test('saves a ZIP file of what was chosen', async () => {
    const { api } = await start();
    await userEvent.selectOptions(screen.getByRole('combobox', { name: 'What to download' }), 'Results');
    await press('Download ZIP');
    await waitFor(() => expect(saveFile).toHaveBeenCalledOnce());
    const [blob, name] = vi.mocked(saveFile).mock.calls[0] ?? [];
    expect([blob?.type, blob?.size, name]).toEqual(['application/zip', 2, 'retouch-images.zip']);
    expect(api.archives).toEqual([{ imageIds: ['a.jpg', 'b.jpg'], include: 'results' }]);
  });

  test('says why it failed', async () => {
    await start();
    server.use(
      http.post('*/api/images/archive', () =>
        HttpResponse.json({ detail: 'Image not found' }, { status: 404 }),
      ),
    );
    await press('Download ZIP');
    expect(await screen.findByText('Failed to download images, try again later')).toBeVisible();
    expect(screen.getByText('Image not found')).toBeVisible();
    expect(saveFile).not.toHaveBeenCalled();
  });

  test('does not save the page of a network that asks to sign in', async () => {
    await start();
    server.use(http.post('*/api/images/archive', aSignInPage));
    await press('Download ZIP');
    expect(await screen.findByText('The connection was lost. Please try again.')).toBeVisible();
    expect(saveFile).not.toHaveBeenCalled();
  });

  test('can be canceled', async () => {
    await start();
    server.use(http.post('*/api/images/archive', () => delay('infinite')));
    await press('Download ZIP');
    expect(await screen.findByText('Preparing the ZIP file')).toBeVisible();
    await press('Cancel');
    expect(await screen.findByRole('button', { name: 'Download ZIP' })).toBeEnabled();
    expect(screen.queryByText(/^Failed to download/)).toBeNull();
    expect(saveFile).not.toHaveBeenCalled();
  });
});
