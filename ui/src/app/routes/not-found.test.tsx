import { screen, within } from '@testing-library/react';
import { expect, test } from 'vitest';
import { renderApp } from '@/testing/render-app';

test('names the address and leads on', async () => {
  renderApp('/imagse/7');
  await screen.findByRole('heading', { name: 'This page does not exist' });
  expect(screen.getByText('/imagse/7')).toBeVisible();
  expect(screen.getByRole('link', { name: 'Go to the dashboard' })).toHaveAttribute('href', '/dashboard');
  const ways = within(screen.getByRole('navigation', { name: 'Where to go from here' }));
  expect(ways.getAllByRole('link').map(({ textContent }) => textContent)).toEqual([
    'Remove Background',
    'Upscale',
    'Magic Fix',
  ]);
});

test('leads a user to the images as well', async () => {
  renderApp('/imagse/7', { signedIn: true });
  const ways = within(await screen.findByRole('navigation', { name: 'Where to go from here' }));
  expect(await ways.findByRole('link', { name: 'My Images' })).toHaveAttribute('href', '/images');
});
