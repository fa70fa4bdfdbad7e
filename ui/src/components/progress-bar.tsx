type ProgressBarProps = { label: string; fraction: number | null };

/** `fraction` null: something is going on, how much is left is unknown. */
export function ProgressBar({ label, fraction }: ProgressBarProps) {
  const percent = fraction === null ? undefined : Math.round(fraction * 100);
  return (
    <div
      role="progressbar"
      aria-label={label}
      aria-valuenow={percent}
      aria-valuemin={0}
      aria-valuemax={100}
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
