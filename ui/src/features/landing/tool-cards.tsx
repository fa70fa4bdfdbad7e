import { ButtonLink } from '@/components/button-link';
import { Icon } from '@/components/icon';
import { useConfig } from '@/lib/env';
import { toolNames } from '@/lib/tool-names';
import { tools } from './texts';

export function ToolCards() {
  const { tools: installed } = useConfig();
  return (
    <section className="page py-12 md:py-16" aria-labelledby="tools">
      <h2 id="tools" className="text-xl font-bold md:text-2xl">
        Three tools, one price list
      </h2>
      <ul className="mt-8 grid gap-6 md:grid-cols-3">
        {tools.map(({ tool, to, icon, text }) => {
          const facts = installed.find((candidate) => candidate.tool === tool);
          return (
            <li key={tool} className="flex flex-col rounded-lg border border-line bg-surface p-6">
              <span className="grid size-11 place-items-center rounded-md bg-accent-wash text-accent">
                <Icon name={icon} className="size-6" />
              </span>
              <h3 className="mt-4 text-lg font-semibold">{toolNames[tool]}</h3>
              <p className="mt-2 flex-1 text-soft">{text}</p>
              <div className="mt-6 flex min-h-11 items-center justify-between gap-3">
                <span className="text-sm text-soft">{priceLine(facts)}</span>
                {facts?.available ? (
                  <ButtonLink to={to} look="secondary" size="sm" aria-label={`Try now: ${toolNames[tool]}`}>
                    Try now
                  </ButtonLink>
                ) : (
                  <span className="text-sm text-soft">Not installed here yet</span>
                )}
              </div>
            </li>
          );
        })}
      </ul>
    </section>
  );
}

function priceLine(tool: { costs: { credits: number }[] } | undefined): string {
  const prices = tool?.costs.map(({ credits }) => credits) ?? [];
  if (prices.length === 0) return '';
  return prices.length === 1 ? `${prices[0]} credits` : `${prices.join(' or ')} credits`;
}
