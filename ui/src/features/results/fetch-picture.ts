import type { QueryClient } from '@tanstack/react-query';
import { fetchFile, isProblem } from '@/lib/api-client';
import { renewPictureUrl } from '@/lib/picture-urls';

/** Fetches a signed URL, or its successor if it has expired. */
export async function fetchPicture(queryClient: QueryClient, url: string): Promise<Blob> {
  try {
    return await fetchFile(url);
  } catch (error) {
    // The API does not tell an expired URL from a missing file; an object store answers 403.
    const mayHaveExpired = isProblem(error, 404) || isProblem(error, 403);
    const renewed = mayHaveExpired && (await renewPictureUrl(queryClient, url));
    if (!renewed || renewed === url) throw error;
    return fetchFile(renewed);
  }
}
