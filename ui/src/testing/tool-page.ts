import { screen } from '@testing-library/react';
import userEvent from '@testing-library/user-event';
import { anImage, aResult } from './builders';
import { MockApi } from './mock-api';
import { renderApp } from './render-app';

export const withResults = (change: Partial<MockApi> = {}) =>
  Object.assign(new MockApi(), {
    images: [anImage()],
    results: ['a', 'b', 'c'].map((imageId, index) =>
      aResult({ imageId, createdAt: `2026-11-20T10:0${index}:00Z` }),
    ),
    upscaled: [aResult({ imageId: 'large', factor: 2 })],
    ...change,
  });
export const open = (path = '/remove-background/image-1', api = withResults()) =>
  renderApp(path, { api, signedIn: true });

export const press = (name: string) =>
  screen.findByRole('button', { name }).then((button) => userEvent.click(button));
export const picture = () => screen.findByRole('img', { name: 'Result without its background' });
