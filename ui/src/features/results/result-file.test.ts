import { HttpResponse, http } from 'msw';
import { expect, test, vi } from 'vitest';
import { plainLook, softShadow } from '@/features/finish/look';
import { useReload } from '@/lib/load-with-retry';
import { createQueryClient } from '@/lib/query-client';
import { aResult } from '@/testing/builders';
import { server } from '@/testing/server';
import { resultFile } from './result-file';

const network = vi.hoisted(() => ({ isLost: true }));

vi.mock('@/features/finish/render-file', () => {
  if (network.isLost) throw new TypeError('Failed to fetch dynamically imported module');
  return { renderFile: async () => new Blob(['file']) };
});

test('the page no longer asks for a reload once the code of a rendered file has arrived', async () => {
  document.head.innerHTML = '<script type="module" src="/assets/index.js"></script>';
  server.use(http.get(window.location.origin, () => HttpResponse.html(document.head.innerHTML)));
  const look = { ...plainLook, shadow: softShadow };
  const file = () => resultFile(createQueryClient(), aResult(), look, [], 'png');
  await expect(file()).rejects.toThrow();
  await vi.waitFor(() => expect(useReload.getState().missing).not.toBeNull());
  network.isLost = false;
  expect(await (await file()).text()).toBe('file');
  expect(useReload.getState().missing).toBeNull();
});
