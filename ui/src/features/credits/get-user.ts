import { useQuery } from '@tanstack/react-query';
import { api, unwrap } from '@/lib/api-client';
import { cacheTime } from '@/lib/query-client';
import { queryKeys } from '@/lib/query-keys';
import { useSession } from '@/lib/session';

export function useUser() {
  const { isSignedIn } = useSession();
  return useQuery({
    queryKey: queryKeys.user,
    queryFn: async ({ signal }) => unwrap(await api.GET('/api/user/get', { signal })),
    gcTime: cacheTime.account,
    enabled: isSignedIn,
  });
}
