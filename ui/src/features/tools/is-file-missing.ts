import type { QueryClient } from '@tanstack/react-query';
import { fetchPicture } from '@/features/results/fetch-picture';
import { isProblem } from '@/lib/api-client';

/** Whether the server no longer has the file of a picture, as opposed to a lost connection or an expired URL. */
export async function isFileMissing(queryClient: QueryClient, url: string): Promise<boolean> {
  try {
    await fetchPicture(queryClient, url);
    return false;
  } catch (error) {
    // An object store answers 403.
    return isProblem(error, 404) || isProblem(error, 403);
  }
}
