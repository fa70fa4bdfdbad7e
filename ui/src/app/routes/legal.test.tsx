import { screen, within } from '@testing-library/react';
import userEvent from '@testing-library/user-event';
import { describe, expect, test, vi } from 'vitest';
import { MockApi } from '@/testing/mock-api';
import { renderApp } from '@/testing/render-app';

const pages = [
  {
    path: '/terms',
    title: 'Terms of Service',
    facts: [
      'Effective July 31, 2025',
      'at least 18 years old to register',
      'Credits are non-refundable.',
      'Images are kept until you delete them, and only their owner can access them',
      'handled within one week',
      'For 30 days we both try to settle the dispute informally',
      'courts of the home country of the company',
      'capped at the amount that you paid us in the last 6 months',
      'OpenRAIL-M',
      'pass them on with it',
    ],
  },
  {
    path: '/privacy',
    title: 'Privacy Policy',
    facts: [
      'Last updated May 21, 2025',
      'not for anyone under 16',
      'Images and results: until you delete them',
      'Only you can access your images',
      'handled within one week',
      'one hour',
    ],
  },
];

describe.each(pages)('$path', ({ path, title, facts }) => {
  test('contains the required statements', async () => {
    renderApp(path);
    await screen.findByRole('heading', { level: 1, name: title });
    for (const fact of facts) expect(screen.getByRole('main')).toHaveTextContent(fact);
  });

  test('links to each of its sections', async () => {
    renderApp(path);
    const contents = within(await screen.findByRole('navigation', { name: 'Contents' }));
    const links = contents.getAllByRole('link');
    const sections = screen.getAllByRole('region');
    expect(links.map((link) => link.getAttribute('href'))).toEqual(sections.map(({ id }) => `${path}#${id}`));
  });

  test('has a scroll position of its own for each section', async () => {
    Element.prototype.scrollIntoView = vi.fn();
    const { router } = renderApp(path);
    const contents = within(await screen.findByRole('navigation', { name: 'Contents' }));
    const keys = [router.state.location.key];
    for (const link of contents.getAllByRole('link').slice(0, 2)) {
      await userEvent.click(link);
      keys.push(router.state.location.key);
      const section = document.getElementById(router.state.location.hash.slice(1));
      expect(vi.mocked(Element.prototype.scrollIntoView).mock.contexts.at(-1)).toBe(section);
      // From there, Tab goes on.
      expect(section).toHaveFocus();
    }
    expect(new Set(keys).size).toBe(3);
  });

  test('names the contact address if one is configured', async () => {
    const api = new MockApi();
    api.config.site = { contactEmail: 'legal@example.com' };
    const { unmount } = renderApp(path, { api });
    const [link] = await within(await screen.findByRole('article')).findAllByRole('link', {
      name: 'legal@example.com',
    });
    expect(link).toHaveAttribute('href', 'mailto:legal@example.com');
    unmount();

    api.config.site = {};
    renderApp(path, { api });
    expect(await screen.findByRole('article')).toHaveTextContent('the company that runs this service');
    expect(screen.queryByRole('link', { name: /@/ })).toBeNull();
  });
});
