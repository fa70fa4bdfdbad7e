import { screen, waitFor } from '@testing-library/react';
import userEvent from '@testing-library/user-event';
import { HttpResponse, http } from 'msw';
import { beforeEach, describe, expect, test, vi } from 'vitest';
import { useMaskStore } from '@/features/mask/mask-store';
import { readImageSize } from '@/lib/image-size';
import { MockApi } from '@/testing/mock-api';
import { renderApp } from '@/testing/render-app';
import { server } from '@/testing/server';
import { type Expectation, type SpecScreen, type Step, specScreens } from '@/testing/spec-texts';

// jsdom cannot decode images and has no canvas.
vi.mock('@/lib/image-size', () => ({ readImageSize: vi.fn() }));
vi.mock('@/features/mask/mask-layer', () => ({ default: () => null }));

beforeEach(() => {
  useMaskStore.setState({ brush: 'paint', brushSize: 20, drafts: {} });
});

describe('the page shows the texts of the specification', () => {
  test.each(specScreens.map((one) => [one.name, one] as const))('%s', async (_, one) => {
    await open(one);
    for (const expected of one.shows.filter(({ absent }) => !absent)) {
      await waitFor(() => expect(isShown(expected), describeExpectation(expected)).toBe(true));
    }
    for (const unexpected of one.shows.filter(({ absent }) => absent)) {
      expect(isShown(unexpected), `not ${describeExpectation(unexpected)}`).toBe(false);
    }
  });
});

async function open({ at, as, api = () => new MockApi(), broken = {}, steps = [] }: SpecScreen) {
  renderApp(at, { api: api(), signedIn: as === 'user' });
  for (const [call, { status, body }] of Object.entries(broken)) {
    const [method, path] = call.split(' ') as ['GET' | 'POST' | 'DELETE', string];
    const answer = () =>
      new HttpResponse(body, {
        status,
        headers: { 'Content-Type': body.startsWith('{') ? 'application/json' : 'text/plain' },
      });
    server.use(http[method.toLowerCase() as 'get' | 'post' | 'delete'](`*${path}`, answer));
  }
  for (const step of steps) await perform(step);
}

async function perform(step: Step) {
  if ('choose' in step) {
    vi.mocked(readImageSize).mockResolvedValue(step.choose);
    const file = new File(['bytes'], 'photo.png', { type: 'image/png' });
    return userEvent.upload(await screen.findByLabelText('Image file'), file);
  }
  if ('type' in step) {
    await userEvent.click(await screen.findByRole('textbox', { name: step.into }));
    return userEvent.paste(step.type);
  }
  const [first] = await screen.findAllByRole('button', { name: step.click });
  await waitFor(() => expect(first).toBeEnabled());
  await userEvent.click(first as HTMLElement);
}

function isShown({ kind, text, to }: Expectation): boolean {
  const byRole = (role: string) => screen.queryAllByRole(role, { name: text });
  switch (kind) {
    case 'text':
      return screen.queryAllByText((_, element) => element !== null && hasText(element, text)).length > 0;
    case 'toast':
      return screen.queryAllByRole('alert').some((one) => isToast(one, text));
    case 'link':
      return byRole('link').some((one) => one.getAttribute('href') === to);
    case 'disabled button':
      return byRole('button').length > 0 && byRole('button').every(isDisabled);
    case 'checked radio':
      return byRole('radio').some((one) => (one as HTMLInputElement).checked);
    case 'dialog':
      return screen.queryByRole('alertdialog') !== null;
    default:
      return byRole(kind).length > 0;
  }
}

function hasText(element: Element, text: string | RegExp): boolean {
  const content = (element.textContent ?? '').replaceAll(/\s+/g, ' ').trim();
  return typeof text === 'string' ? content === text : text.test(content);
}

function isToast(alert: HTMLElement, text: string | RegExp): boolean {
  return alert.closest('.Toastify__toast-container') !== null && hasText(alert, text);
}

function describeExpectation({ kind, text, to }: Expectation): string {
  return [kind, String(text), to && `to ${to}`].filter(Boolean).join(' ');
}

/** A focused button stays focusable while it is disabled. */
function isDisabled(button: HTMLElement) {
  return (button as HTMLButtonElement).disabled || button.getAttribute('aria-disabled') === 'true';
}
