import { screen, waitFor } from '@testing-library/react';
import userEvent from '@testing-library/user-event';
import { HttpResponse, http } from 'msw';
import { beforeEach, describe, expect, test, vi } from 'vitest';
import { useMaskStore } from '@/features/tools/magic-fix/mask/mask-store';
import { readImageSize } from '@/lib/image-size';
import { MockApi } from '@/testing/mock-api';
import { renderApp } from '@/testing/render-app';
import { server } from '@/testing/server';
import { type Saying, type SpecScreen, type Step, specScreens } from '@/testing/spec-texts';

// jsdom decodes no images and draws on no canvas.
vi.mock('@/lib/image-size', () => ({ readImageSize: vi.fn() }));
vi.mock('@/features/tools/magic-fix/mask/mask-layer', () => ({ default: () => null }));

beforeEach(() => {
  useMaskStore.setState({ brush: 'paint', brushSize: 20, works: {} });
});

describe('the page says what the specification says', () => {
  test.each(specScreens.map((one) => [one.name, one] as const))('%s', async (_, one) => {
    await open(one);
    for (const saying of one.says.filter(({ absent }) => !absent)) {
      await waitFor(() => expect(isSaid(saying), describeSaying(saying)).toBe(true));
    }
    for (const saying of one.says.filter(({ absent }) => absent)) {
      expect(isSaid(saying), `not ${describeSaying(saying)}`).toBe(false);
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
  for (const step of steps) await take(step);
}

async function take(step: Step) {
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

function isSaid({ kind, text, to }: Saying): boolean {
  const all = (role: string) => screen.queryAllByRole(role, { name: text });
  switch (kind) {
    case 'text':
      return screen.queryAllByText((_, element) => element !== null && reads(element, text)).length > 0;
    case 'toast':
      return screen.queryAllByRole('alert').some((one) => isToast(one, text));
    case 'link':
      return all('link').some((one) => one.getAttribute('href') === to);
    case 'disabled button':
      return all('button').length > 0 && all('button').every(isDisabled);
    case 'checked radio':
      return all('radio').some((one) => (one as HTMLInputElement).checked);
    case 'dialog':
      return screen.queryByRole('alertdialog') !== null;
    default:
      return all(kind).length > 0;
  }
}

function reads(element: Element, text: string | RegExp): boolean {
  const read = (element.textContent ?? '').replaceAll(/\s+/g, ' ').trim();
  return typeof text === 'string' ? read === text : text.test(read);
}

function isToast(alert: HTMLElement, text: string | RegExp): boolean {
  return alert.closest('.Toastify__toast-container') !== null && reads(alert, text);
}

function describeSaying({ kind, text, to }: Saying): string {
  return [kind, String(text), to && `to ${to}`].filter(Boolean).join(' ');
}

/** Under the keyboard a button does nothing any more, but stays where it can be reached. */
function isDisabled(button: HTMLElement) {
  return (button as HTMLButtonElement).disabled || button.getAttribute('aria-disabled') === 'true';
}
