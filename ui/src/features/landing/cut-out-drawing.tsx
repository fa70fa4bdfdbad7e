/** A drawing of what the first tool does, and openly a drawing: no stock photo plays a result here. */
export function CutOutDrawing() {
  return (
    <div
      className="checkerboard relative aspect-[4/3] overflow-hidden rounded-lg border border-line"
      aria-hidden="true"
    >
      <svg viewBox="0 0 400 300" className="absolute inset-0 size-full" aria-hidden="true">
        <defs>
          <clipPath id="before">
            <rect width="200" height="300" />
          </clipPath>
        </defs>
        <g clipPath="url(#before)">
          <rect width="400" height="300" fill="#f3c9a5" />
          <circle cx="92" cy="84" r="38" fill="#f9e3c6" />
          <path d="M0 190 70 128l64 54 46-38 80 60v96H0z" fill="#c98468" />
          <path d="M0 232 96 196l104 26 100-30 100 40v68H0z" fill="#8d4f4a" />
        </g>
        <g>
          <path d="M200 176c-8-46-40-64-70-66 2 36 24 66 70 70z" fill="#3f9a6d" />
          <path d="M200 166c4-60 36-90 78-94 2 52-26 90-78 98z" fill="#2c7f59" />
          <path d="M200 170c-16-50-10-92 10-122 24 34 20 84-10 122z" fill="#56b885" />
          <path d="M200 200v-62" stroke="#1f5f43" strokeWidth="5" strokeLinecap="round" />
          <path d="M146 196h108l-14 76a10 10 0 0 1-10 8h-60a10 10 0 0 1-10-8z" fill="#e9e4da" />
          <path d="M200 196h54l-14 76a10 10 0 0 1-10 8h-30z" fill="#d6cfc1" />
          <rect x="138" y="184" width="124" height="22" rx="7" fill="#f6f2ea" />
          <path d="M200 184h55a7 7 0 0 1 7 7v8a7 7 0 0 1-7 7h-55z" fill="#e4ddd0" />
        </g>
        <path d="M200 0v300" stroke="#fff" strokeWidth="3" />
        <circle cx="200" cy="150" r="17" fill="#fff" />
        <path
          d="m194 144-6 6 6 6m12-12 6 6-6 6"
          fill="none"
          stroke="#161819"
          strokeWidth="2.4"
          strokeLinecap="round"
          strokeLinejoin="round"
        />
      </svg>
    </div>
  );
}
