import type { Image, ImageList } from '@/lib/api-types';

const orders: Record<string, (a: Image, b: Image) => number> = {
  oldest: (a, b) => a.createdAt.localeCompare(b.createdAt),
  name: (a, b) => (a.name ?? '').localeCompare(b.name ?? ''),
  largest: (a, b) => b.sizeBytes - a.sizeBytes,
};

/** Returns a page of images as the API does; `images` are sorted newest first. The cursor is a position. */
export function pageOf(images: Image[], query: URLSearchParams): ImageList {
  const search = (query.get('search') ?? '').toLowerCase();
  const found = images
    .filter(({ name }) => !search || name?.toLowerCase().includes(search))
    .toSorted(orders[query.get('sort') ?? ''] ?? (() => 0));
  const limit = Number(query.get('limit') ?? found.length);
  const before = query.get('before');
  const [from, to] = [Number(before ?? 0), Number(before ?? 0) + limit];
  return {
    images: found.slice(from, to),
    ...(to < found.length && { next: String(to) }),
    ...(!before && query.has('limit') && { total: found.length }),
  };
}
