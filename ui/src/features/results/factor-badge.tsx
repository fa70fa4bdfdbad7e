export function FactorBadge({ factor }: { factor: number }) {
  return (
    <span className="rounded-full border border-line bg-surface px-2 py-0.5 text-xs font-bold text-ink tabular-nums">
      {`${factor}X`}
    </span>
  );
}
