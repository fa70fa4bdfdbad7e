export function Spinner({ label }: { label?: string }) {
  return (
    <>
      <svg viewBox="0 0 20 20" className="size-4 animate-spin" aria-hidden="true">
        <circle cx="10" cy="10" r="8" fill="none" stroke="currentColor" strokeWidth="2.5" opacity="0.25" />
        <path
          d="M10 2a8 8 0 0 1 8 8"
          fill="none"
          stroke="currentColor"
          strokeWidth="2.5"
          strokeLinecap="round"
        />
      </svg>
      {label && <span role="status">{label}</span>}
    </>
  );
}
