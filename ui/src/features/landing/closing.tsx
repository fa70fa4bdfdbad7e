import { ButtonLink } from '@/components/button-link';
import { paths } from '@/lib/paths';
import { useSession } from '@/lib/session';

export function Closing() {
  const { isSignedIn } = useSession();
  return (
    <section className="page pt-12 text-center md:pt-16">
      <h2 className="text-xl font-bold md:text-2xl">Start Processing Images With AI</h2>
      <p className="mx-auto mt-3 max-w-xl text-soft">
        Images are kept until you delete them, and only you can see them.
      </p>
      <ButtonLink to={isSignedIn ? paths.removeBackground : paths.signup} size="lg" className="mt-6">
        Start now
      </ButtonLink>
    </section>
  );
}
