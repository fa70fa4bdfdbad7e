import { screen, within } from '@testing-library/react';
import { expect, test } from 'vitest';
import { renderApp } from '@/testing/render-app';

test('names the path and links to the tools', async () => {
  renderApp('/imagse/7');
  await screen.findByRole('heading', { name: 'This page does not exist' });
  expect(screen.getByText('/imagse/7')).toBeVisible();
  expect(screen.getByRole('link', { name: 'Go to the dashboard' })).toHaveAttribute('href', '/dashboard');
  const links = within(screen.getByRole('navigation', { name: 'Where to go from here' }));
  expect(links.getAllByRole('link').map(({ textContent }) => textContent)).toEqual([
    'Remove Background',
    'Upscale',
    'Magic Fix',
  ]);
});

test('also links a user to the images', async () => {
  renderApp('/imagse/7', { signedIn: true });
  const links = within(await screen.findByRole('navigation', { name: 'Where to go from here' }));
  expect(await links.findByRole('link', { name: 'My Images' })).toHaveAttribute('href', '/images');
});
