import { brushSizes, useMaskStore } from './mask-store';

/** The letter keys of the mask editor. */
export function maskLetters(invert: () => void): Record<string, () => void> {
  return {
    b: () => useMaskStore.setState({ brush: 'paint' }),
    e: () => useMaskStore.setState({ brush: 'erase' }),
    s: () => useMaskStore.setState({ brush: 'select' }),
    l: () => useMaskStore.setState({ brush: 'lasso' }),
    i: invert,
    h: () => useMaskStore.setState({ brush: 'move' }),
    '[': () => changeSize(-1),
    ']': () => changeSize(1),
  };
}

function changeSize(by: -1 | 1) {
  const at = brushSizes.indexOf(useMaskStore.getState().brushSize);
  const brushSize = brushSizes[Math.min(brushSizes.length - 1, Math.max(0, at + by))];
  if (brushSize) useMaskStore.setState({ brushSize });
}
