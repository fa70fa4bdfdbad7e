import * as Menu from 'radix-ui/dropdown-menu';
import { Link } from 'react-router';
import { useSession } from '@/lib/session';
import { AccountButton } from './account-button';
import { menuLinks } from './navigation-links';

const item =
  'flex min-h-10 thumb:min-h-11 items-center rounded-sm px-3 text-sm outline-none data-highlighted:bg-accent-wash data-highlighted:text-accent';

export default function AccountMenu() {
  const session = useSession();
  return (
    // Not modal: a modal menu locks scrolling and removes the scroll bar, which shifts the page.
    <Menu.Root modal={false} defaultOpen>
      <Menu.Trigger asChild>
        <AccountButton />
      </Menu.Trigger>
      <Menu.Portal>
        <Menu.Content
          align="end"
          sideOffset={8}
          className="z-50 min-w-48 animate-rise rounded-md border border-line bg-surface p-1 shadow-overlay"
        >
          {menuLinks.map(({ to, label }) => (
            <Menu.Item key={to} asChild className={item}>
              <Link to={to}>{label}</Link>
            </Menu.Item>
          ))}
          <Menu.Item className={item} onSelect={() => void session.signOut()}>
            Logout
          </Menu.Item>
        </Menu.Content>
      </Menu.Portal>
    </Menu.Root>
  );
}
