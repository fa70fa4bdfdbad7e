import { HttpResponse, http } from 'msw';
import { server } from './server';

/** Makes a GET fail until the returned function is called. */
export function breakGet(
  path: string,
  fail = (): Response => new HttpResponse(null, { status: 503 }),
): () => void {
  let isBroken = true;
  // Undefined leaves the call to the mock API.
  server.use(http.get(path, () => (isBroken ? fail() : undefined)));
  return () => {
    isBroken = false;
  };
}
