import { ButtonLink } from '@/components/button-link';
import { Icon } from '@/components/icon';
import { useConfig } from '@/lib/env';
import { paths } from '@/lib/paths';
import { useSession } from '@/lib/session';
import { CutOutDrawing } from './cut-out-drawing';
import { tools } from './texts';

export function Hero() {
  const { isLoading, isSignedIn } = useSession();
  const { newUserCredits } = useConfig();
  return (
    <section className="border-b border-line bg-surface">
      <div className="page grid items-center gap-10 py-12 md:py-16 lg:grid-cols-2 lg:py-20">
        <div>
          <h1 className="text-2xl font-bold md:text-3xl">AI Image Editing Made Simple</h1>
          <p className="mt-4 max-w-xl text-lg text-soft">
            Clean cut-outs, larger pictures and repaired details, made by AI models that run on this server.
          </p>
          {/* The place is kept while it is unknown who is here, so that nothing below moves. */}
          <div className="mt-8 min-h-12">
            {!isLoading &&
              (isSignedIn ? (
                <ButtonLink to={paths.images} size="lg">
                  Go to My Images
                </ButtonLink>
              ) : (
                <div className="flex flex-wrap items-center gap-x-5 gap-y-3">
                  <ButtonLink to={paths.signup} size="lg">
                    Try for free
                  </ButtonLink>
                  <p className="text-sm text-soft">{newUserCredits} free credits, no card needed</p>
                </div>
              ))}
          </div>
          <ul className="mt-8 flex flex-wrap gap-x-2 gap-y-2 border-t border-line pt-6">
            {tools.map(({ to, icon, action }) => (
              <li key={to}>
                <ButtonLink to={to} look="quiet" size="sm" className="-ml-3 sm:ml-0 sm:first:-ml-3">
                  <span className="text-accent">
                    <Icon name={icon} />
                  </span>
                  {action}
                </ButtonLink>
              </li>
            ))}
          </ul>
        </div>
        <CutOutDrawing />
      </div>
    </section>
  );
}
