export function Logo() {
  return (
    <span className="inline-flex shrink-0 items-center gap-2.5 text-lg font-bold tracking-tight">
      <svg viewBox="0 0 32 32" className="size-8" aria-hidden="true">
        <rect width="32" height="32" rx="8" className="fill-accent" />
        <path d="M16 6a10 10 0 0 0 0 20z" className="fill-on-accent" />
        <path
          d="M16 6a10 10 0 0 1 0 20"
          fill="none"
          className="stroke-on-accent"
          strokeWidth="2.4"
          strokeDasharray="3.2 2.6"
        />
      </svg>
      Retouch
    </span>
  );
}
