import { useMutation, useQueryClient } from '@tanstack/react-query';
import { useEffect, useRef, useState } from 'react';
import { fetchPicture } from '@/features/results/fetch-picture';
import { sendForm } from '@/lib/api-client';
import type { ImageSize } from '@/lib/image-size';
import { detailedParts, type Part } from './detailed-parts';
import { cut, decode, reduce } from './picture-parts';

export type Sample = { part: Part; url: string };

type Decoded = { image: HTMLImageElement; parts: Part[] };

/** Makes samples of a picture, one detail after the other. */
export function useSample(original: string, factor: 2 | 4) {
  const queryClient = useQueryClient();
  const [sample, setSample] = useState<Sample | null>(null);
  const [count, setCount] = useState(0);
  const decoded = useRef<Promise<Decoded> | null>(null);

  const making = useMutation({
    mutationFn: async () => {
      decoded.current ??= prepare();
      const { image, parts } = await decoded.current;
      const part = parts[count % parts.length];
      if (!part) throw new Error('The picture has no pixels');
      const query = `factor=${factor}&width=${image.naturalWidth}&height=${image.naturalHeight}`;
      const { body } = await sendForm(`/api/upscale/sample?${query}`, { file: await cut(image, part) });
      return { part, url: URL.createObjectURL(body) };
    },
    onSuccess: (made) => {
      setSample(made);
      setCount((shown) => shown + 1);
    },
    onError: () => {
      decoded.current = null;
    },
  });

  async function prepare(): Promise<Decoded> {
    // A canvas may only be read if its pictures have the page's origin.
    const url = original.startsWith('blob:')
      ? original
      : URL.createObjectURL(await fetchPicture(queryClient, original));
    const image = await decode(url);
    if (url !== original) URL.revokeObjectURL(url);
    const size: ImageSize = { x: image.naturalWidth, y: image.naturalHeight };
    return { image, parts: detailedParts(size, reduce(image)) };
  }

  useEffect(() => () => void (sample && URL.revokeObjectURL(sample.url)), [sample]);

  return { sample, make: making.mutate, isBusy: making.isPending, error: making.error };
}
