import { Notice } from '@/components/notice';
import { type PackNumber, useBuyPack } from '@/features/credits/buy-pack';
import { LeavingOverlay } from '@/features/credits/leaving-overlay';
import { PackCard } from '@/features/credits/pack-card';
import { PriceList } from '@/features/credits/price-list';
import { useConfig } from '@/lib/env';
import { useSession } from '@/lib/session';
import { plural, t } from '@/lib/translate';

export default function PricingRoute() {
  const { packs, features, newUserCredits } = useConfig();
  const { isSignedIn } = useSession();
  const buy = useBuyPack();
  return (
    <div className="page py-8 md:py-12">
      <title>{t('Pricing · Retouch')}</title>
      <header className="mb-8 text-center md:mb-12">
        <h1 className="text-2xl font-bold md:text-3xl">{t('Flexible Pricing. Full Control')}</h1>
        <p className="mt-3 text-lg text-soft">
          {plural(newUserCredits, {
            one: '# Free Credit for New Users',
            other: '# Free Credits for New Users',
          })}
        </p>
      </header>
      {isSignedIn && !features.payments && (
        <div className="mb-6">
          <Notice>
            {t('This server does not sell credit packs yet. You can still use your free credits.')}
          </Notice>
        </div>
      )}
      <ul className="grid gap-6 lg:grid-cols-3">
        {packs.map((pack) => (
          <PackCard
            key={pack.number}
            pack={pack}
            isHighlighted={pack.label === 'Most popular'}
            onChoose={() => buy.start(pack.number as PackNumber)}
          />
        ))}
      </ul>
      <section className="mx-auto mt-12 lg:max-w-2xl" aria-labelledby="costs">
        <h2 id="costs" className="mb-4 text-lg font-semibold">
          {t('What a run costs')}
        </h2>
        <PriceList />
        <p className="mt-3 max-w-2xl text-sm text-soft">
          {t(
            'We hold the credits when you start a run and charge them when the result is ready. A failed or canceled run costs nothing.',
          )}
        </p>
      </section>
      {buy.isPending && <LeavingOverlay />}
    </div>
  );
}
