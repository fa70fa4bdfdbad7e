import { act, renderHook } from '@testing-library/react';
import { afterEach, beforeEach, expect, test, vi } from 'vitest';
import { useOpening } from './use-opening';

beforeEach(() => {
  vi.useFakeTimers({ toFake: ['requestAnimationFrame', 'cancelAnimationFrame', 'performance'] });
});
afterEach(() => {
  vi.useRealTimers();
  vi.unstubAllGlobals();
});

const open = (isReady: boolean, isOpening = true) =>
  renderHook((ready: boolean) => useOpening(ready, isOpening), { initialProps: isReady });
const pass = (ms: number) => act(() => vi.advanceTimersByTime(ms));

test('shows almost all of the picture before, then moves gently to the one after', () => {
  const { result, rerender } = open(false);
  expect(result.current.share).toBe(92);
  pass(5000);
  expect(result.current.share).toBe(92);
  rerender(true);
  pass(1400);
  const halfway = result.current.share;
  expect(halfway).toBeLessThan(92);
  expect(halfway).toBeGreaterThan(24);
  pass(2000);
  expect(result.current.share).toBe(24);
});

test('leaves the line to the user who takes it', () => {
  const { result } = open(true);
  pass(1000);
  act(() => result.current.onShare(70));
  pass(5000);
  expect(result.current.share).toBe(70);
});

test('does not move for people who asked for less motion', () => {
  vi.stubGlobal('matchMedia', () => ({ matches: true }));
  expect(open(true).result.current.share).toBe(24);
});

test('other comparisons start in the middle and stay there', () => {
  const { result } = open(true, false);
  pass(5000);
  expect(result.current.share).toBe(50);
});
