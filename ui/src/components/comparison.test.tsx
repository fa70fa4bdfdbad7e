import { fireEvent, render, screen } from '@testing-library/react';
import { beforeEach, expect, test } from 'vitest';
import { stubFrame } from '@/testing/frame';
import { Comparison } from './comparison';

const slider = () => screen.getByRole('slider', { name: 'Before and after' });

beforeEach(() => {
  stubFrame();
  render(<Comparison label="Before and after" before={null} />);
});

/** What the pointer hits, as the slider lets it through. */
const surface = () => slider().previousElementSibling as HTMLElement;

test('the line follows a mouse from the press on', () => {
  const mouse = { pointerId: 1, pointerType: 'mouse', buttons: 1 };
  fireEvent.pointerDown(surface(), { ...mouse, clientX: 150 });
  expect(slider()).toHaveValue('25');
  fireEvent.pointerMove(surface(), { ...mouse, clientX: 480 });
  expect(slider()).toHaveValue('80');
  fireEvent.pointerMove(surface(), { ...mouse, clientX: 700 });
  expect(slider()).toHaveValue('100');
  fireEvent.pointerMove(surface(), { ...mouse, buttons: 0, clientX: 60 });
  expect(slider()).toHaveValue('100');
});

test('the line follows a finger that drags or taps, but not one that scrolls the page', () => {
  const finger = { pointerId: 1, pointerType: 'touch', buttons: 1 };
  fireEvent.pointerDown(surface(), { ...finger, clientX: 150 });
  expect(slider()).toHaveValue('50');
  fireEvent.pointerMove(surface(), { ...finger, clientX: 151 });
  fireEvent.pointerCancel(surface(), finger);
  expect(slider()).toHaveValue('50');
  fireEvent.pointerDown(surface(), { ...finger, clientX: 150 });
  fireEvent.pointerMove(surface(), { ...finger, clientX: 480 });
  expect(slider()).toHaveValue('80');
  fireEvent.click(surface(), { clientX: 60 });
  expect(slider()).toHaveValue('10');
});

test('the arrow keys move the line after a click', () => {
  fireEvent.click(surface(), { clientX: 300 });
  expect(slider()).toHaveFocus();
  fireEvent.change(slider(), { target: { value: '51' } });
  expect(slider()).toHaveAttribute('aria-valuetext', '51 percent before');
});
