import type { Query, QueryClient, QueryKey } from '@tanstack/react-query';

/** Data that was loaded ahead is fresh enough for a page that opens within this time. */
export const AHEAD_MS = 5_000;

/** When each query was loaded ahead of its page. */
const askedAt = new WeakMap<Query, number>();

/** Records that a query is being loaded ahead of its page, which then need not load it once more. */
export function noteLoadedAhead(queryClient: QueryClient, queryKey: QueryKey) {
  const query = queryClient.getQueryCache().find({ queryKey, exact: true });
  // Fresh data is not fetched again.
  if (query?.state.fetchStatus === 'fetching') askedAt.set(query, Date.now());
}

export function isLoadedAhead(query: Query): boolean {
  const { dataUpdatedAt, isInvalidated } = query.state;
  const asked = askedAt.get(query);
  if (asked === undefined || isInvalidated) return false;
  return dataUpdatedAt >= asked && Date.now() - dataUpdatedAt < AHEAD_MS;
}
