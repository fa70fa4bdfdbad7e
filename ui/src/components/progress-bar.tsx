type ProgressBarProps = {
  label: string;
  /** From 0 to 1; null shows activity without a value. */
  fraction: number | null;
  /** Read out after the percentage. */
  detail?: string | null;
};

export function ProgressBar({ label, fraction, detail }: ProgressBarProps) {
  const percent = fraction === null ? undefined : Math.round(fraction * 100);
  return (
    <div
      role="progressbar"
      aria-label={label}
      aria-valuenow={percent}
      aria-valuemin={0}
      aria-valuemax={100}
      aria-valuetext={percent !== undefined && detail ? `${percent}%, ${detail}` : undefined}
      className="h-2 w-full overflow-hidden rounded-full bg-sunken"
    >
      {percent === undefined ? (
        <div className="h-full w-[30%] animate-slide rounded-full bg-accent" />
      ) : (
        <div
          className="h-full rounded-full bg-accent transition-[width] duration-300"
          style={{ width: `${percent}%` }}
        />
      )}
    </div>
  );
}
