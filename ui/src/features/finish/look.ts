// The finish of a cutout. The API renders the file from the same values that the preview is drawn from.
/** `url` is the object URL of `picture`. `blur` blurs the original: the standard deviation in percent of its longer side. */
export type Background =
  | { color: string }
  | { gradient: Gradient }
  | { blur: number }
  | { picture: File; url: string };

/** `angle` is in degrees, as in CSS: 0 is upwards. */
export type Gradient = { from: string; to: string; angle: number };

/** In percent of the subject's longer side, except the opacity. */
export type Shadow = { opacity: number; blur: number; x: number; y: number };

/** `margin` is in percent of the subject's longer side; `aspect` is like `4:5`. */
export type Crop = { margin: number; aspect: string | null };

export type Look = { background: Background | null; shadow: Shadow | null; crop: Crop | null };

export const plainLook: Look = { background: null, shadow: null, crop: null };

/** A soft shadow below the subject. */
export const softShadow: Shadow = { opacity: 0.35, blur: 2, x: 0, y: 2 };

/** Whether a picture and a CSS background show the look exactly, so that no canvas is needed. */
export function isFlat({ background, shadow, crop }: Look): boolean {
  return !shadow && !crop && !(background && 'blur' in background);
}

/** Converts a background to a CSS `background`; undefined if CSS has none for it. */
export function backgroundCss(background: Background | null): string | undefined {
  if (!background || 'blur' in background) return undefined;
  if ('color' in background) return background.color;
  if ('gradient' in background) return gradientCss(background.gradient);
  return `center / cover no-repeat url("${background.url}")`;
}

export const gradientCss = ({ from, to, angle }: Gradient) => `linear-gradient(${angle}deg, ${from}, ${to})`;
