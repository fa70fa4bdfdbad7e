import { QueryClient } from '@tanstack/react-query';
import { HttpResponse, http } from 'msw';
import { expect, test } from 'vitest';
import { server } from '@/testing/server';
import { fetchPicture } from './fetch-picture';

test.each([403, 404])('fetches a picture by its new URL after an answer of %s', async (status) => {
  const old = `/api/files/result/slept-${status}?expires=1000`;
  const renewed = `/api/files/result/slept-${status}?expires=2000`;
  const queryClient = new QueryClient();
  let url = old;
  await queryClient.fetchQuery({ queryKey: ['results'], queryFn: () => [{ url }] });
  url = renewed;
  server.use(
    http.get('*/api/files/result/:id', ({ request }) =>
      request.url.endsWith('2000') ? HttpResponse.text('picture') : new HttpResponse(null, { status }),
    ),
  );
  expect(await (await fetchPicture(queryClient, old)).text()).toBe('picture');
});

test('does not ask again for a picture that is gone', async () => {
  const queryClient = new QueryClient();
  const url = '/api/files/result/gone?expires=1000';
  await queryClient.fetchQuery({ queryKey: ['results'], queryFn: () => [{ url }] });
  let asked = 0;
  server.use(
    http.get('*/api/files/result/:id', () => {
      asked += 1;
      return new HttpResponse(null, { status: 404 });
    }),
  );
  await expect(fetchPicture(queryClient, url)).rejects.toThrow();
  expect(asked).toBe(1);
});
