/** Replaces konva's `Tween.js` in the build; see `vite.config.ts`. */
export const Tween = undefined;
export const Easings = undefined;
