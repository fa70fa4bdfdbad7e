import { type ReactNode, useId } from 'react';

type SceneProps = {
  pot?: string;
  hasCup?: boolean;
  hasFlower?: boolean;
  isScratched?: boolean;
  isBlurred?: boolean;
  /** What is drawn on it as a mask. */
  mask?: ReactNode;
};

export const scratches = 'M38 20 96 130 74 196 122 286M302 12 286 92 340 170 322 290M120 60 300 44';

/** A pot plant on a table, drawn as simply as the examples need it. */
export function Scene({ pot = '#f1ebe0', hasCup, hasFlower, isScratched, isBlurred, mask }: SceneProps) {
  const blur = useId();
  return (
    <svg viewBox="0 0 400 300" className="block w-full rounded-md border border-line" aria-hidden="true">
      <filter id={blur}>
        <feGaussianBlur stdDeviation="5" />
      </filter>
      <rect width="400" height="300" fill="#f3cfae" />
      <rect x="36" y="24" width="132" height="150" rx="4" fill="#fbeedd" />
      <circle cx="112" cy="78" r="26" fill="#fff8ea" />
      <path d="M36 146c40-30 70 10 132-22v50H36z" fill="#dba184" />
      <path d="M102 24v150M36 98h132" stroke="#c98468" strokeWidth="5" />
      <rect x="36" y="24" width="132" height="150" rx="4" fill="none" stroke="#c98468" strokeWidth="7" />
      <rect y="232" width="400" height="68" fill="#8d4f4a" />
      <rect y="232" width="400" height="10" fill="#a5635b" />
      <g filter={isBlurred ? `url(#${blur})` : undefined}>
        <path d="M252 176c-8-46-40-64-70-66 2 36 24 66 70 70z" fill="#3f9a6d" />
        <path d="M252 166c4-60 36-90 78-94 2 52-26 90-78 98z" fill="#2c7f59" />
        <path d="M252 170c-16-50-10-92 10-122 24 34 20 84-10 122z" fill="#56b885" />
        {!isBlurred && (
          <path
            d="M252 168c4-40 8-70 10-104M250 166c26-40 50-66 72-84M248 172c-22-30-40-46-58-56M257 120l12-14M256 134l-12-14M276 128l22-2M284 116l6-20M226 146l-18 2"
            fill="none"
            stroke="#1f5f43"
            strokeWidth="2.5"
            strokeLinecap="round"
          />
        )}
      </g>
      <path d="M252 200v-60" stroke="#1f5f43" strokeWidth="5" strokeLinecap="round" />
      {hasFlower && (
        <g transform="translate(196 84)" fill="#d8434e">
          <path d="M0 6c10 30 30 50 54 90" fill="none" stroke="#1f5f43" strokeWidth="5" />
          {[0, 72, 144, 216, 288].map((turn) => (
            <ellipse key={turn} rx="11" ry="18" cy="-17" transform={`rotate(${turn})`} />
          ))}
          <circle r="9" fill="#f6c445" />
        </g>
      )}
      <path d="M198 190h108l-12 62a10 10 0 0 1-10 8h-64a10 10 0 0 1-10-8z" fill={pot} />
      <path d="M252 190h54l-12 62a10 10 0 0 1-10 8h-32z" fill="#000" opacity="0.08" />
      <rect x="190" y="180" width="124" height="22" rx="7" fill={pot} />
      <rect x="190" y="180" width="124" height="22" rx="7" fill="#fff" opacity="0.25" />
      {hasCup && (
        <g>
          <path d="M146 224h8a12 12 0 0 1 0 24h-12" fill="none" stroke="#3f6fa8" strokeWidth="7" />
          <path d="M92 214h56l-5 44a6 6 0 0 1-6 5h-34a6 6 0 0 1-6-5z" fill="#4f86c6" />
        </g>
      )}
      {isScratched && (
        <path d={scratches} fill="none" stroke="#fffaf2" strokeWidth="3.5" strokeLinecap="round" />
      )}
      <g fill="none" stroke="#f5117b" strokeLinecap="round" strokeLinejoin="round" opacity="0.55">
        {mask}
      </g>
    </svg>
  );
}
