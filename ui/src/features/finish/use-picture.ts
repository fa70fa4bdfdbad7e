import { keepPreviousData, type QueryClient, useQuery, useQueryClient } from '@tanstack/react-query';
import { renewPictureUrl } from '@/lib/picture-urls';

/**
 * Loads a picture for drawing; null until it is decoded. A renewed URL of the same picture loads nothing. While another
 * one loads, such as a larger copy, the picture stays.
 */
export function usePicture(url: string | null) {
  const queryClient = useQueryClient();
  const path = url?.startsWith('data:') ? url : (url?.split('?')[0] ?? null);
  const { data, isError, isFetching, refetch } = useQuery({
    queryKey: ['picture', path],
    queryFn: () => loadOrRenew(queryClient, url ?? ''),
    enabled: path !== null,
    staleTime: Number.POSITIVE_INFINITY,
    // A decoded picture takes a lot of memory.
    gcTime: 0,
    placeholderData: keepPreviousData,
  });
  const picture = data ?? null;
  return {
    picture,
    isMissing: path !== null && !picture,
    hasFailed: isError,
    isTrying: isFetching,
    tryAgain: () => void refetch(),
  };
}

/** Loads a signed URL, or its successor if it has expired. */
async function loadOrRenew(queryClient: QueryClient, url: string): Promise<HTMLImageElement> {
  try {
    return await load(url);
  } catch (error) {
    const renewed = await renewPictureUrl(queryClient, url);
    if (!renewed || renewed === url) throw error;
    return load(renewed);
  }
}

function load(url: string): Promise<HTMLImageElement> {
  return new Promise((resolve, reject) => {
    const picture = new Image();
    // The API may redirect to another origin, and a canvas with pictures from there could not be read.
    picture.crossOrigin = 'anonymous';
    picture.onload = () => resolve(picture);
    picture.onerror = () => reject(new Error('The picture could not be loaded'));
    picture.src = url;
  });
}
