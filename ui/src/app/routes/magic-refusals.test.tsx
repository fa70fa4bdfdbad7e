import { fireEvent, screen, waitFor, within } from '@testing-library/react';
import userEvent from '@testing-library/user-event';
import { HttpResponse, http } from 'msw';
import { describe, expect, onTestFinished, test, vi } from 'vitest';
import { keyOf, setCatalogue } from '@/lib/translate';
import { aConfig } from '@/testing/builders';
import {
  draw,
  enabledRunButton,
  field,
  mask,
  open,
  prepareMagicPage,
  run,
  surface,
  withImage,
} from '@/testing/magic-page';
import { server } from '@/testing/server';

vi.mock('@/features/mask/mask-layer', () => import('@/testing/mask-layer'));

prepareMagicPage();

describe('refusals', () => {
  test('a run without prompt or stroke, without calling the API', async () => {
    const api = withImage();
    open(api);
    await userEvent.click(await enabledRunButton());
    expect(await field()).toHaveAccessibleDescription(/Prompt is required/);
    expect(await field()).toHaveFocus();
    // At the field, and as a toast.
    await waitFor(() => expect(screen.getAllByText('Prompt is required')).toHaveLength(2));
    await waitFor(() =>
      expect(screen.getAllByText('You have to draw to select area you want to fix 1')).toHaveLength(2),
    );
    expect(api.prompts).toEqual([]);
  });

  test('a message disappears when its field changes', async () => {
    open(withImage());
    await userEvent.click(await enabledRunButton());
    const editor = (await surface()).closest('section') as HTMLElement;
    await draw();
    expect(within(editor).queryByText(/^You have to draw/)).toBeNull();
    expect(within(editor).getByText('Prompt is required')).toBeVisible();
    await userEvent.type(await field(), 'a');
    expect(within(editor).queryByText('Prompt is required')).toBeNull();
  });

  test('a message disappears with its toast', async () => {
    open(withImage());
    await userEvent.click(await enabledRunButton());
    await waitFor(() => expect(screen.getAllByText('Prompt is required')).toHaveLength(2));
    await waitFor(() => expect(screen.getAllByText(/^You have to draw/)).toHaveLength(2));
    await run();
    await screen.findByRole('img', { name: 'Result 1' });
    // Those that are closing have no role. jsdom ends no animation.
    const shown = () => screen.queryAllByRole('alert').map(({ textContent }) => textContent);
    await waitFor(() => expect(shown()).toEqual([]));
  });

  test('a prompt of more than 500 letters', async () => {
    const api = withImage();
    open(api);
    await draw();
    fireEvent.change(await field(), { target: { value: 'a'.repeat(501) } });
    expect(screen.getByText('501 of 500')).toBeVisible();
    await userEvent.click(await enabledRunButton());
    expect(await field()).toHaveAccessibleDescription(
      /Prompt is too long, maximum of 500 letters is allowed/,
    );
    expect(api.prompts).toEqual([]);
  });

  test('a mask that was completely erased', async () => {
    const api = withImage();
    open(api);
    await draw();
    await userEvent.click(screen.getByRole('radio', { name: 'Eraser' }));
    await userEvent.click(screen.getByRole('radio', { name: '30 px' }));
    await draw();
    await userEvent.type(await field(), 'remove');
    await userEvent.click(await enabledRunButton());
    expect(
      (await screen.findAllByText('You have to draw to select area you want to fix 1'))[0],
    ).toBeVisible();
    expect(api.prompts).toEqual([]);
  });

  test('a prompt that no model can follow, explained at the field and not charged', async () => {
    open(withImage());
    await run('a castle in the sky');
    await waitFor(async () => expect(await field()).toHaveAccessibleDescription(/No castles here\./));
    expect(await field()).toBeInvalid();
    expect(await field()).toHaveFocus();
    expect(screen.queryByText('Failed to magic fix image, please try again')).toBeNull();
    expect(screen.getByRole('link', { name: 'credits 20' })).toBeVisible();
    // The strokes stay, and the next one continues the mask.
    await draw(300);
    expect(await mask()).toHaveTextContent('paint paint');
    await userEvent.type(await field(), '!');
    expect(screen.queryByText('No castles here.')).toBeNull();
  });

  test('right-to-left words: the field switches direction, and quoted words keep their order', async () => {
    open(withImage());
    const detail = 'It does not know “أزل”, “هذا”; try “remove it”.';
    server.use(
      http.post('*/api/magic-images/fix/:id', () =>
        HttpResponse.json({ code: 'prompt_not_possible', detail }, { status: 422 }),
      ),
    );
    await run('أزل هذا');
    expect(await field()).toHaveAttribute('dir', 'auto');
    const problem = await screen.findByRole('alert');
    expect(problem).toHaveTextContent(detail);
    expect([...problem.querySelectorAll('bdi')].map(({ textContent }) => textContent)).toEqual([
      '“أزل”',
      '“هذا”',
      '“remove it”',
    ]);
  });

  test('a mask that the API cannot use, explained at the mask', async () => {
    open(withImage());
    server.use(
      http.post('*/api/magic-images/fix/:id', () =>
        HttpResponse.json({ code: 'mask_invalid', detail: 'The mask is odd.' }, { status: 422 }),
      ),
    );
    await run();
    expect(await screen.findByRole('alert')).toHaveTextContent('The mask is odd.');
    expect(await field()).not.toBeInvalid();
    // And as a toast: a phone shows the results by now.
    await waitFor(() => expect(screen.getAllByText('The mask is odd.')).toHaveLength(2));
  });

  test('a refusal in the language of the page', async () => {
    open(withImage());
    server.use(
      http.post('*/api/magic-images/fix/:id', () =>
        HttpResponse.json({ code: 'mask_invalid', detail: 'The mask is odd.' }, { status: 422 }),
      ),
    );
    setCatalogue({ [keyOf('code:mask_invalid')]: 'Die Maske ist ungültig.' }, 'de');
    onTestFinished(() => setCatalogue({}, 'en'));
    await run();
    expect(await screen.findByRole('alert')).toHaveTextContent('Die Maske ist ungültig.');
  });

  test('says Not enough credits with a link to the packs', async () => {
    const api = withImage();
    api.user.credits = 7;
    open(api);
    await run();
    const notice = await screen.findByRole('alert');
    expect(notice).toHaveTextContent('Not enough credits');
    expect(within(notice).getByRole('link')).toHaveAttribute('href', '/pricing');
  });

  test('an image above the general limit', async () => {
    const config = aConfig();
    config.limits.maxDimension = 1000;
    open(withImage({ config }));
    expect(await screen.findByText('Image dimensions too big (Max 1000x1000)')).toBeVisible();
    await screen.findByText('No images to show');
    expect(await screen.findByRole('button', { name: 'Magic Fix' })).toBeDisabled();
  });
});

test('a prompt that this server cannot follow is refused while typing', async () => {
  const api = withImage();
  open(api);
  await draw();
  await userEvent.type(await field(), 'a dragon');
  expect(await screen.findByText(/No dragons here/)).toBeVisible();
  expect(await field()).toBeInvalid();
  await userEvent.click(await enabledRunButton());
  expect(api.prompts).toEqual([]);
  await userEvent.clear(await field());
  await userEvent.type(await field(), 'remove it');
  expect(await field()).toBeValid();
  await userEvent.click(await enabledRunButton());
  await waitFor(() => expect(api.prompts).toEqual(['remove it']));
});
