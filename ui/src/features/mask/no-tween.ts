/** In place of konva's module of this name, which `vite.config.ts` leaves out. */
export const Tween = undefined;
export const Easings = undefined;
