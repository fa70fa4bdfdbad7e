import { formatBytes, credits as formatCredits, formatDuration } from '@/lib/format';
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
    ['Model', model && (demo ? `${model} (demo)` : model)],
    ['Checksum', modelSha256 && `SHA-256 ${modelSha256}`],
    ['Ran on', device && (devices[device] ?? device)],
    ['Time', durationMs !== undefined && formatDuration(durationMs)],
    ['Price', credits === 0 ? 'Free' : formatCredits(credits)],
    ['Prompt', prompt && `“${prompt}”`],
    [
      'Created',
      createdAt && new Date(createdAt).toLocaleString('en-US', { dateStyle: 'long', timeStyle: 'short' }),
    ],
    ['File', `PNG, ${result.width} × ${result.height} px${sizeBytes ? `, ${formatBytes(sizeBytes)}` : ''}`],
    ['Run ID', result.jobId],
  ];
  return rows.filter((row): row is [string, string] => Boolean(row[1]));
}
