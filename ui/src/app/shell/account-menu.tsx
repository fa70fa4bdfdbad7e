import * as Menu from 'radix-ui/dropdown-menu';
import { Link } from 'react-router';
import { Icon } from '@/components/icon';
import { Promotion } from '@/features/credits/promotion';
import { type Language, languages, switchLanguage, useLanguage } from '@/lib/language';
import { paths } from '@/lib/paths';
import { useSession } from '@/lib/session';
import { t } from '@/lib/translate';
import { AccountButton } from './account-button';
import { menuLinks } from './navigation-links';

const item =
  'flex min-h-10 thumb:min-h-11 items-center rounded-sm px-3 text-sm outline-none data-highlighted:bg-accent-wash data-highlighted:text-accent';

export default function AccountMenu() {
  const { language } = useLanguage();
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
          {/* Where the bar has no room for it. */}
          <Menu.Item asChild className={`${item} font-semibold text-accent min-[75rem]:hidden`}>
            <Link to={paths.pricing}>
              <Promotion />
            </Link>
          </Menu.Item>
          {menuLinks.map(({ to, label }) => (
            <Menu.Item key={to} asChild className={item}>
              <Link to={to}>{t(label)}</Link>
            </Menu.Item>
          ))}
          <Menu.RadioGroup
            aria-label={t('Language')}
            value={language}
            onValueChange={(code) => void switchLanguage(code as Language)}
            className="my-1 border-y border-line py-1"
          >
            {Object.entries(languages).map(([code, name]) => (
              <Menu.RadioItem key={code} value={code} lang={code} className={`${item} justify-between`}>
                {name}
                <Menu.ItemIndicator>
                  <Icon name="check" className="size-4" />
                </Menu.ItemIndicator>
              </Menu.RadioItem>
            ))}
          </Menu.RadioGroup>
          <Menu.Item className={item} onSelect={() => void session.signOut()}>
            {t('Logout')}
          </Menu.Item>
        </Menu.Content>
      </Menu.Portal>
    </Menu.Root>
  );
}
