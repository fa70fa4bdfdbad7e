import { screen, waitFor } from '@testing-library/react';
import userEvent from '@testing-library/user-event';
import { expect, vi } from 'vitest';
import { restoreBatches, useBatches } from '@/features/batch/batch-store';
import '@/features/batch/keep-batches';
import { saveFile } from '@/lib/download';
import { readImageSize } from '@/lib/image-size';
import type { MockApi } from './mock-api';

export const aFile = (name: string, type = 'image/png') => new File(['bytes'], name, { type });
export const three = () => [aFile('one.png'), aFile('two.png'), aFile('three.png')];

/** Forgets the batches of the last test. The test file has mocked `readImageSize` and `saveFile`. */
export function resetBatches() {
  useBatches.setState({}, true);
  sessionStorage.clear();
  vi.mocked(readImageSize).mockReset().mockResolvedValue({ x: 800, y: 600 });
  vi.mocked(saveFile).mockReset();
}

/** Leaves of the batches what a reload does. */
export function reloadBatches() {
  window.dispatchEvent(new Event('pagehide'));
  useBatches.setState(restoreBatches(), true);
}

/** Chooses files, and returns their list. */
export async function choose(files: File[]) {
  await userEvent.upload(await screen.findByLabelText('Image file'), files);
  return screen.findByRole('list', { name: /^\d+ images?$/ });
}

export function rowOf(name: string) {
  const row = screen.getByText(name).closest('li');
  if (!row) throw new Error(`no row for ${name}`);
  return row;
}

/** Starts the batch once its button, which counts its runs, is enabled. */
export async function start(count: number) {
  const name = count === 1 ? 'Start 1 run' : `Start ${count} runs`;
  const button = await screen.findByRole('button', { name });
  await waitFor(() => expect(button).toBeEnabled());
  await userEvent.click(button);
}

/** The requests that start runs. */
export const runs = (api: MockApi, path = '/api/rmbg-images/remove-bg-ai') =>
  api.calls.filter((call) => call.startsWith(`POST ${path}`));
