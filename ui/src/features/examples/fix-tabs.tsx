import { Tabs } from '@/components/tabs';
import { FixExample } from './fix-example';
import fixes from './fixes.json';

/** One tab for each of Magic Fix's uses. */
export default function FixTabs({ label }: { label: string }) {
  return (
    <Tabs
      label={label}
      tabs={fixes.map((example) => ({
        title: example.title,
        content: <FixExample example={example} />,
      }))}
    />
  );
}
