import { formatBytes, credits as formatCredits, formatDuration, quoted } from '@/lib/format';
import { currentLocale, t } from '@/lib/translate';
import type { DisplayedResult } from './displayed-result';

const devices: Record<string, string> = { cpu: 'CPU', cuda: 'GPU (CUDA)' };

/** Everything known about a result and the run that produced it. */
export default function ResultDetails({ result }: { result: DisplayedResult }) {
  return (
    <dl className="mt-2 grid grid-cols-[auto_1fr] gap-x-4 gap-y-1 rounded-md border border-line bg-surface px-4 py-3">
      {rowsOf(result).map(([name, value]) => (
        <div key={name} className="col-span-full grid grid-cols-subgrid">
          <dt className="text-soft">{name}</dt>
          <dd className="min-w-0 [overflow-wrap:anywhere] tabular-nums">{value}</dd>
        </div>
      ))}
    </dl>
  );
}

function rowsOf(result: DisplayedResult): [name: string, value: string][] {
  const { model, modelSha256, demo, device, durationMs, credits, createdAt, sizeBytes, prompt } = result;
  const rows: [string, string | null | undefined | false][] = [
    [t('Model'), model && (demo ? t('{model} (demo)', { model }) : model)],
    [t('Checksum'), modelSha256 && `SHA-256 ${modelSha256}`],
    [t('Ran on'), device && (devices[device] ?? device)],
    [t('Time'), durationMs !== undefined && formatDuration(durationMs)],
    [t('Price'), credits === 0 ? t('Free') : formatCredits(credits)],
    [t('Prompt'), prompt && quoted(prompt)],
    [
      t('Created'),
      createdAt &&
        new Date(createdAt).toLocaleString(currentLocale(), { dateStyle: 'long', timeStyle: 'short' }),
    ],
    [
      t('File'),
      `PNG, ${result.width} × ${result.height} px${sizeBytes ? `, ${formatBytes(sizeBytes)}` : ''}`,
    ],
    [t('Run ID'), result.jobId],
  ];
  return rows.filter((row): row is [string, string] => Boolean(row[1]));
}
