import { Tabs } from '@/components/tabs';
import { dataText } from '@/lib/translate';
import { FixExample } from './fix-example';
import fixes from './fixes.json';

/** A demo model's result makes a poor first impression, so another example is open at first. */
const first = Math.max(
  0,
  fixes.findIndex(({ isDemo }) => !isDemo),
);

/** One tab for each of Magic Fix's uses. */
export default function FixTabs({ label }: { label: string }) {
  return (
    <Tabs
      label={label}
      first={first}
      tabs={fixes.map((example) => ({
        title: dataText(example.title),
        content: <FixExample example={example} />,
      }))}
    />
  );
}
