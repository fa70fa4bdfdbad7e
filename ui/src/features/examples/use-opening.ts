import { useEffect, useState } from 'react';

/** The percentages of `before` that are visible at first and in the end. */
const FROM = 92;
const TO = 24;
const PAUSE_MS = 500;
const MOVE_MS = 1800;

/**
 * Moves the line of a comparison once, gently, so that people see what is gone. Starts when both pictures are there and
 * stops as soon as the user takes the line. With reduced motion, it only sets the line where it would end.
 */
export function useOpening(isReady: boolean, isOpening: boolean) {
  const [share, setShare] = useState(isOpening ? FROM : 50);
  const [isTaken, setTaken] = useState(false);
  const mayMove = isOpening && isReady && !isTaken;

  useEffect(() => {
    if (!mayMove) return;
    if (window.matchMedia?.('(prefers-reduced-motion: reduce)').matches) return setShare(TO);
    const start = performance.now() + PAUSE_MS;
    let frame = requestAnimationFrame(function step(now) {
      const along = Math.min(1, Math.max(0, (now - start) / MOVE_MS));
      // Slow at both ends.
      setShare(FROM + (TO - FROM) * along * along * (3 - 2 * along));
      if (along < 1) frame = requestAnimationFrame(step);
    });
    return () => cancelAnimationFrame(frame);
  }, [mayMove]);

  function take(next: number) {
    setTaken(true);
    setShare(next);
  }

  return { share, onShare: take };
}
