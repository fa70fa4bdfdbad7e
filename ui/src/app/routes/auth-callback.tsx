import { Callback } from '@/features/auth/callback';
import { paths } from '@/lib/paths';

export default function AuthCallbackRoute() {
  return <Callback to={paths.dashboard} />;
}
