import { Callback } from '@/features/auth/callback';
import { paths } from '@/lib/paths';

export default function AuthCallbackMagicRoute() {
  return <Callback to={paths.magic} />;
}
