import { QueryClientProvider } from '@tanstack/react-query';
import { fireEvent, render, screen, waitFor } from '@testing-library/react';
import { afterEach, expect, test, vi } from 'vitest';
import { createQueryClient } from '@/lib/query-client';
import { DownloadControl } from './download-control';

afterEach(() => vi.unstubAllGlobals());

test('a copy reaches the clipboard within the click, before its picture is there', async () => {
  vi.stubGlobal('ClipboardItem', class {});
  const write = vi.fn(async () => {});
  Object.defineProperty(navigator, 'clipboard', { configurable: true, value: { write } });
  const onSaved = vi.fn();
  let finish = (_: Blob) => {};
  const picture = new Promise<Blob>((resolve) => {
    finish = resolve;
  });
  render(
    <QueryClientProvider client={createQueryClient()}>
      <DownloadControl fileOf={() => picture} onSaved={onSaved} />
    </QueryClientProvider>,
  );

  const pause = new Promise((resolve) => setTimeout(resolve));
  fireEvent.click(screen.getByRole('button', { name: 'Copy' }));
  await pause;
  expect(write).toHaveBeenCalledOnce();
  expect(onSaved).not.toHaveBeenCalled();
  finish(new Blob());
  await waitFor(() => expect(onSaved).toHaveBeenCalledOnce());
});

test('what changes before a file is there does not count as saved', async () => {
  Object.defineProperty(navigator, 'clipboard', { configurable: true, value: { write: async () => {} } });
  vi.stubGlobal('ClipboardItem', class {});
  let finish = (_: Blob) => {};
  const picture = new Promise<Blob>((resolve) => {
    finish = resolve;
  });
  const [atClick, later] = [vi.fn(), vi.fn()];
  const client = createQueryClient();
  const shown = (onSaved: () => void) => (
    <QueryClientProvider client={client}>
      <DownloadControl fileOf={() => picture} onSaved={onSaved} />
    </QueryClientProvider>
  );
  const { rerender } = render(shown(atClick));
  fireEvent.click(screen.getByRole('button', { name: 'Copy' }));
  rerender(shown(later));
  finish(new Blob());
  await waitFor(() => expect(atClick).toHaveBeenCalledOnce());
  expect(later).not.toHaveBeenCalled();
});
