import { type ReactNode, useId } from 'react';
import { ButtonLink } from '@/components/button-link';
import { medianSeconds } from '@/features/catalog/bound-models';
import { classNames } from '@/lib/class-names';
import { isInstalled, useConfig, useTool } from '@/lib/env';
import { formatSeconds } from '@/lib/format';
import { toolName } from '@/lib/tool-names';
import { formatNumber, plural, t } from '@/lib/translate';
import type { SectionTexts } from './texts';

type ExampleSectionProps = { texts: SectionTexts; isRaised?: boolean; children: ReactNode };

/** One tool: its description, its price, a link to it, and examples. */
export function ExampleSection({ texts, isRaised = false, children }: ExampleSectionProps) {
  const id = useId();
  const offer = useTool(texts.tool);
  const config = useConfig();
  const seconds = offer && medianSeconds(offer);
  return (
    <section aria-labelledby={id} className={classNames(isRaised && 'border-y border-line bg-surface')}>
      <div className="page grid gap-8 py-12 md:py-20">
        <header className="flex flex-wrap items-end justify-between gap-x-12 gap-y-6">
          <div className="max-w-2xl">
            <h2 id={id} className="text-xl font-bold md:text-2xl">
              {t(texts.title)}
            </h2>
            <p className="mt-3 text-soft">{t(texts.text)}</p>
          </div>
          <div className="flex min-h-11 flex-wrap items-center gap-x-4 gap-y-2">
            {offer && isInstalled(config, texts.tool) ? (
              <>
                <ButtonLink
                  to={texts.to}
                  variant="secondary"
                  aria-label={t('Try now: {tool}', { tool: toolName(texts.tool) })}
                >
                  {t('Try now')}
                </ButtonLink>
                {/* The price and the time are for paid runs. */}
                {offer.available && (
                  <span className="text-sm text-soft tabular-nums">
                    {prices(offer.costs.map(({ credits }) => credits))}
                    {seconds != null && ` · ${t('typically {time}', { time: formatSeconds(seconds) })}`}
                  </span>
                )}
              </>
            ) : (
              <span className="text-sm text-soft">{t('Not installed on this server yet')}</span>
            )}
          </div>
        </header>
        {children}
      </div>
    </section>
  );
}

/** The prices of a tool's runs, from the lowest. */
function prices(costs: number[]): string {
  const [first = 0, ...others] = costs.map(formatNumber);
  return others.length > 0
    ? t('{lower} or {higher} credits per image', { lower: first, higher: others.join(', ') })
    : plural(costs[0] ?? 0, { one: '# credit per image', other: '# credits per image' });
}
