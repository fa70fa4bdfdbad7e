import { ComparisonSlider } from '@/components/comparison-slider';
import { Tabs } from '@/components/tabs';
import examples from './examples.json';

// What each tool does best, at one glance.
const previews = [
  { title: 'Magic Fix', example: examples.fixes.find(({ id }) => id === 'remove') },
  { title: 'Remove Background', example: examples.cutOuts[0] },
  { title: 'Upscale image', example: examples.upscales[0] },
];

export function Preview() {
  return (
    <Tabs
      label="What Retouch does"
      tabs={previews.map(({ title, example }, index) => ({
        title,
        content: example && <ComparisonSlider key={example.id} pair={example} isFirst={index === 0} />,
      }))}
    />
  );
}
