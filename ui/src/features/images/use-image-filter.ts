import { useMemo } from 'react';
import { useSearchParams } from 'react-router';
import type { ImageSort } from '@/lib/api-types';
import { allImages, type ImageFilter } from './get-images';
import { sorts } from './image-sort';

/** Reads what a page of images shows from its address, so that the Back button finds it again. */
export function imageFilterOf(params: URLSearchParams): ImageFilter {
  const sort = params.get('sort') ?? '';
  return {
    search: (params.get('search') ?? '').trim().slice(0, 100),
    sort: Object.hasOwn(sorts, sort) ? (sort as ImageSort) : allImages.sort,
  };
}

export function useImageFilter() {
  const [params, setParams] = useSearchParams();
  const filter = useMemo(() => imageFilterOf(params), [params]);

  function setFilter(change: Partial<ImageFilter>) {
    const { search, sort } = { ...filter, ...change };
    const next = { ...(search && { search }), ...(sort !== allImages.sort && { sort }) };
    // Typing a word is not a step of the history.
    setParams(next, { replace: true, preventScrollReset: true });
  }

  return { filter, setFilter };
}
