import type { QueryClient } from '@tanstack/react-query';
import { fetchFile, isProblem } from '@/lib/api-client';
import { renewPictureUrl } from '@/lib/picture-urls';

/** Fetches a signed URL, or its successor if it has expired. */
export async function fetchPicture(queryClient: QueryClient, url: string): Promise<Blob> {
  try {
    return await fetchFile(url);
  } catch (error) {
    const renewed = isProblem(error, 403) && (await renewPictureUrl(queryClient, url));
    if (!renewed) throw error;
    return fetchFile(renewed);
  }
}
