import { type ReactNode, useEffect, useRef, useState } from 'react';
import { useLocation, useNavigate } from 'react-router';
import { Button } from '@/components/button';
import { Notice } from '@/components/notice';
import { Skeleton } from '@/components/skeleton';
import { useConfig } from '@/lib/env';
import type { Provider } from '@/lib/identity-client';
import { pathWithin } from '@/lib/path-within';
import { paths } from '@/lib/paths';
import { useSession } from '@/lib/session';
import { t } from '@/lib/translate';
import { brands, byPassword, signInFailure } from './texts';

const order: Provider[] = ['google', 'facebook', 'password'];

type SignInPanelProps = {
  title: string;
  text: string;
  /** The label of a button, with the provider. */
  labelOf: (provider: string) => string;
  children: ReactNode;
};

export function SignInPanel({ title, text, labelOf, children }: SignInPanelProps) {
  const { identity } = useConfig();
  const providers = order.filter((provider) => identity.providers[provider] != null);
  const { isLoading, isSignedIn, signIn, signOut } = useSession();
  // The page to return to, set by `Protected`.
  const { state } = useLocation();
  const [pending, setPending] = useState<Provider | null>(null);
  const [failure, setFailure] = useState<string | null>(null);
  const navigate = useNavigate();
  /** Whether the user who opened this page was signed in; null while that is unknown. */
  const wasSignedIn = useRef<boolean | null>(null);

  useEffect(() => {
    if (isLoading) return;
    const isArrival = wasSignedIn.current === null;
    wasSignedIn.current ??= isSignedIn;
    if (!isSignedIn) return;
    // A signed-in user who comes here wants to switch accounts: end the session without asking.
    if (wasSignedIn.current) return void (isArrival && signOut());
    // The sign-in was finished in another tab.
    void navigate(pathWithin(state) ?? paths.dashboard, { replace: true });
  }, [isLoading, isSignedIn, signOut, navigate, state]);

  async function startSignIn(provider: Provider) {
    setPending(provider);
    setFailure(null);
    try {
      await signIn(provider, { returnTo: pathWithin(state) });
    } catch (error) {
      setFailure(signInFailure(error));
    } finally {
      // Re-enables the buttons in case the user comes back with the Back button.
      setPending(null);
    }
  }

  return (
    <section className="page py-12 md:py-20">
      <title>{`${title} · Retouch`}</title>
      <div className="mx-auto max-w-md rounded-lg border border-line bg-surface p-6 shadow-raised md:p-8">
        <h1 className="text-xl font-bold">{title}</h1>
        <p className="mt-2 text-soft">{text}</p>
        <div className="mt-6 grid gap-3">
          {providers.map((provider) =>
            isLoading || isSignedIn ? (
              <Skeleton key={provider} className="h-12" />
            ) : (
              <ProviderButton
                key={provider}
                provider={provider}
                label={labelOf(provider === 'password' ? t(byPassword) : brands[provider])}
                isPending={pending === provider}
                isBlocked={pending !== null}
                onClick={() => startSignIn(provider)}
              />
            ),
          )}
          {failure && <Notice tone="error">{failure}</Notice>}
        </div>
        <p className="mt-6 border-t border-line pt-6 text-sm text-soft">{children}</p>
      </div>
    </section>
  );
}

type ProviderButtonProps = {
  provider: Provider;
  label: string;
  isPending: boolean;
  isBlocked: boolean;
  onClick: () => void;
};

function ProviderButton({ provider, label, isPending, isBlocked, onClick }: ProviderButtonProps) {
  return (
    <Button
      variant={provider === 'password' ? 'primary' : 'secondary'}
      size="lg"
      className="w-full text-balance"
      disabled={isBlocked}
      isBusy={isPending}
      onClick={onClick}
    >
      {label}
    </Button>
  );
}
