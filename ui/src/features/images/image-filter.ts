import type { ImageSort } from '@/lib/api-types';
import { type Message, msg } from '@/lib/translate';

export type ImageFilter = {
  /** A part of the name; empty for all images. */
  search: string;
  sort: ImageSort;
};

/** Maximum length of a search text in the API. */
export const MAX_SEARCH_LENGTH = 100;

export const sorts: Record<ImageSort, Message> = {
  newest: msg('Newest'),
  oldest: msg('Oldest'),
  name: msg('Name'),
  largest: msg('Largest'),
};

export const allImages: ImageFilter = { search: '', sort: 'newest' };

/** The search that this input asks for. The API refuses NUL characters. */
export const searchOf = (text: string) => text.replaceAll('\0', '').trim().slice(0, MAX_SEARCH_LENGTH);

/** Reads what My Images shows from the URL. */
export function imageFilterOf(params: URLSearchParams): ImageFilter {
  const sort = params.get('sort') ?? '';
  return {
    search: searchOf(params.get('search') ?? ''),
    sort: Object.hasOwn(sorts, sort) ? (sort as ImageSort) : allImages.sort,
  };
}
