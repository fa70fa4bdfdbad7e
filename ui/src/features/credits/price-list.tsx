import { useConfig } from '@/lib/env';
import { credits } from '@/lib/format';
import { toolName } from '@/lib/tool-names';

/** The price of each kind of run, from the API. */
export function PriceList() {
  const { tools } = useConfig();
  return (
    <dl className="divide-y divide-line rounded-lg border border-line bg-surface px-6">
      {tools.flatMap(({ tool, costs }) =>
        costs.map(({ factor, credits: cost }) => (
          <div key={`${tool}-${factor}`} className="flex justify-between gap-4 py-3">
            <dt>
              {toolName(tool)}
              {factor ? ` ${factor}X` : ''}
            </dt>
            <dd className="font-semibold whitespace-nowrap tabular-nums">{credits(cost)}</dd>
          </div>
        )),
      )}
    </dl>
  );
}
