import { fireEvent, screen, waitFor } from '@testing-library/react';
import userEvent from '@testing-library/user-event';
import { beforeAll, beforeEach, expect } from 'vitest';
import { useMaskStore } from '@/features/mask/mask-store';
import { anImage } from './builders';
import { stubFrame } from './frame';
import { MockApi } from './mock-api';
import { renderApp } from './render-app';

/** Prepares the tests of a file that opens the editor of Magic Fix. The file has mocked its mask layer. */
export function prepareMagicPage() {
  // The first test would compile the page in its own time, which on a busy machine is all it has.
  beforeAll(async () => {
    await Promise.all([import('@/app/routes/magic-image'), import('@/features/runs/job-progress')]);
  }, 60_000);

  beforeEach(() => {
    useMaskStore.setState({ brush: 'paint', brushSize: 20, takesAway: false, drafts: {} });
    stubFrame();
  });
}

export const withImage = (change: Partial<MockApi> = {}) =>
  Object.assign(new MockApi(), { images: [anImage()], ...change });
export const open = (api: MockApi) => renderApp('/magic/image-1', { api, signedIn: true });

export const surface = () => screen.findByRole('application', { name: 'Image to draw on' });
export const mask = () => screen.findByTestId('mask');
export const field = () => screen.findByRole('textbox', { name: 'Prompt' });

export async function enabledRunButton() {
  const button = await screen.findByRole('button', { name: 'Magic Fix' });
  await waitFor(() => expect(button).toBeEnabled());
  return button;
}

export async function draw(x = 100) {
  const image = await surface();
  await mask();
  fireEvent.pointerDown(image, { pointerId: 1, clientX: x, clientY: 100, button: 0, buttons: 1 });
  fireEvent.pointerMove(image, { pointerId: 1, clientX: x + 50, clientY: 120, buttons: 1 });
  fireEvent.pointerUp(image, { pointerId: 1, clientX: x + 50, clientY: 120 });
}

export async function run(prompt = 'remove the object') {
  await draw();
  await userEvent.type(await field(), prompt);
  await userEvent.click(await enabledRunButton());
}
