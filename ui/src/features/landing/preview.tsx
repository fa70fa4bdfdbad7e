import { Tabs } from '@/components/tabs';
import cutouts from '@/features/examples/cutouts.json';
import { ExampleComparison } from '@/features/examples/example-comparison';
import fixes from '@/features/examples/fixes.json';
import upscales from '@/features/examples/upscales.json';
import { msg, t } from '@/lib/translate';

const removal = fixes.find(({ id }) => id === 'remove');

const previews = [
  { title: msg('Magic Fix'), example: removal, prompt: removal?.prompt },
  { title: msg('Remove Background'), example: cutouts[0] },
  { title: msg('Upscale image'), example: upscales[0] },
];

export function Preview() {
  return (
    <Tabs
      label={t('What Retouch does')}
      tabs={previews.map(({ title, example, prompt }, index) => ({
        title: t(title),
        content: example && (
          <ExampleComparison key={example.id} pair={example} isFirst={index === 0} prompt={prompt} />
        ),
      }))}
    />
  );
}
