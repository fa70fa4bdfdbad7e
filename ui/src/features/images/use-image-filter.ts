import { useMemo } from 'react';
import { useSearchParams } from 'react-router';
import { allImages, type ImageFilter, imageFilterOf } from './image-filter';

/** What My Images shows. It is part of the URL, so that the Back button finds it again. */
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
