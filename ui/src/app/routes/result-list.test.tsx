import { screen, waitFor, within } from '@testing-library/react';
import userEvent from '@testing-library/user-event';
import { describe, expect, test } from 'vitest';
import { anImage, aResult } from '@/testing/builders';
import { open, press, withResults } from '@/testing/tool-page';

describe('the facts of a result', () => {
  test('are shown in one line, and in full on request', async () => {
    open();
    const line = await screen.findByText('1200 × 800 px · 1.8 s · 5 credits');
    expect(screen.queryByText('CPU')).toBeNull();
    await userEvent.click(line);
    expect(await screen.findByText('CPU')).toBeVisible();
    const facts = screen.getAllByRole('definition').map(({ textContent }) => textContent);
    expect(facts).toEqual(
      expect.arrayContaining(['isnet', `SHA-256 ${'f'.repeat(64)}`, '1.8 s', '5 credits', 'job-1']),
    );
  });

  test('label demo models and free runs', async () => {
    const results = [aResult({ credits: 0, demo: true, model: 'tiny', device: 'cuda' })];
    open(undefined, withResults({ results }));
    await userEvent.click(await screen.findByText('1200 × 800 px · 1.8 s · free'));
    expect(await screen.findByText('tiny (demo)')).toBeVisible();
    expect(screen.getByText('GPU (CUDA)')).toBeVisible();
    expect(screen.getByText('Free')).toBeVisible();
  });
});

test("a result on its image's page links to the tool page, where it is selected", async () => {
  const { router } = open('/images/image-1');
  await userEvent.click(await screen.findByRole('link', { name: 'Background removed, result 2' }));
  await waitFor(() => expect(router.state.location.pathname).toBe('/remove-background/image-1'));
  expect(await screen.findByRole('button', { name: 'Result 2' })).toHaveAttribute('aria-pressed', 'true');
});

describe('keyboard navigation', () => {
  test('moves through the results with arrow keys; Tab stops at the selected one', async () => {
    open();
    await press('Result 1');
    await userEvent.keyboard('{ArrowRight}');
    expect(screen.getByRole('button', { name: 'Result 2' })).toHaveFocus();
    expect(screen.getByRole('button', { name: 'Result 2' })).toHaveAttribute('aria-pressed', 'true');
    await userEvent.keyboard('{End}{ArrowRight}');
    expect(screen.getByRole('button', { name: 'Result 3' })).toHaveFocus();
    await userEvent.keyboard('{Home}');
    expect(screen.getByRole('button', { name: 'Result 1' })).toHaveFocus();
    const stops = screen.getAllByRole('button', { name: /^Result \d/ }).map(({ tabIndex }) => tabIndex);
    expect(stops).toEqual([0, -1, -1]);
  });

  test.each([
    ['/remove-background/image-1', 'DELETE', 'Results'],
    ['/images/image-1', 'DELETE Background removed, result 2', 'Background removed'],
  ])('continues at the heading after a deletion: %s', async (path, button, heading) => {
    open(path);
    await press(button);
    const question = within(await screen.findByRole('alertdialog'));
    await userEvent.click(question.getByRole('button', { name: 'Delete' }));
    await waitFor(() => expect(screen.getByRole('heading', { name: heading })).toHaveFocus());
  });

  test('moves through the image grid', async () => {
    const images = ['x', 'y', 'z'].map((id) => anImage({ id }));
    open('/remove-background', withResults({ images }));
    const [first, second, third] = await screen.findAllByRole('button', { name: /^Image of/ });
    first?.focus();
    await userEvent.keyboard('{ArrowRight}');
    expect(second).toHaveFocus();
    await userEvent.keyboard('{End}');
    expect(third).toHaveFocus();
    await userEvent.keyboard('{ArrowRight}');
    expect(third).toHaveFocus();
    await userEvent.keyboard('{ArrowLeft}{Home}');
    expect(first).toHaveFocus();
  });
});

describe('runs on other pages', () => {
  test('a run of another tool is listed, and does not block this one', async () => {
    const api = withResults();
    api.startJob({ imageId: 'image-1', tool: 'upscale', factor: 4, position: 2 });
    open('/remove-background/image-1', api);
    const list = await screen.findByRole('list', { name: 'Running' });
    const link = within(list).getByRole('link', { name: 'Upscale 4X: 2 ahead · about 4 s left' });
    expect(link).toHaveAttribute('href', '/upscale/image-1');
    await waitFor(() => expect(screen.getByRole('button', { name: 'Remove Bg AI' })).toBeEnabled());
  });

  test("the image's page lists them, and then their results", async () => {
    const api = withResults({ stepMs: 30 });
    api.startJob({ imageId: 'image-1', tool: 'upscale', factor: 2 });
    open('/images/image-1', api);
    expect(await screen.findByRole('list', { name: 'Running' })).toHaveTextContent('Upscale 2X');
    expect(await screen.findByRole('img', { name: 'Upscaled, result 1' })).toBeVisible();
    // Finished by another tab.
    Object.assign(api.jobs[0] ?? {}, { state: 'done' });
    api.upscaled.push(aResult({ imageId: 'larger', factor: 2 }));
    expect(await screen.findByRole('img', { name: 'Upscaled, result 2' })).toBeVisible();
    expect(screen.queryByRole('list', { name: 'Running' })).toBeNull();
  });

  test.each(['/images', '/remove-background', '/magic'])('%s shows a badge on the image', async (path) => {
    const images = ['image-1', 'image-2'].map((id) => anImage({ id }));
    const api = withResults({ images, stepMs: 30 });
    api.startJob({ imageId: 'image-2', tool: 'upscale', factor: 2, position: 1 });
    open(path, api);
    const badge = await screen.findByText(/ahead$|^Next in line$|%$/);
    const [first, second] = screen.getAllByRole('img', { name: /^Image of/ });
    expect(second?.closest('li')).toContainElement(badge);
    expect(first?.closest('li')).not.toContainElement(badge);
  });
});
