import { render, screen } from '@testing-library/react';
import { afterEach, expect, test } from 'vitest';
import { setCatalogue } from '@/lib/translate';
import { DateTime } from './date-time';

afterEach(() => setCatalogue({}, 'en'));

test.each([
  ['en', '10:05 AM'],
  ['de', '10:05'],
  ['ja', '10:05'],
  ['zh-Hans', '10:05'],
])('the date of a narrow column can have its time on a line of its own: %s', (language, time) => {
  setCatalogue({}, language);
  render(<DateTime at={new Date(2026, 10, 20, 10, 5)} />);
  expect(screen.getByText(time)).toHaveClass('whitespace-nowrap');
});
