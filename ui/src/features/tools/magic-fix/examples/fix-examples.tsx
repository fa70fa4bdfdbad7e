import { ComparisonFix } from '@/components/comparison-fix';
import { Tabs } from '@/components/tabs';
import examples from './examples.json';

/** What Magic Fix is for, shown by what it really made. */
export default function FixExamples() {
  return (
    <section aria-labelledby="examples" className="min-w-0">
      <h2 id="examples" className="mb-4 text-lg font-semibold">
        What it is for
      </h2>
      <Tabs
        label="Examples"
        tabs={examples.map((example) => ({
          title: example.title,
          content: <ComparisonFix example={example} />,
        }))}
      />
    </section>
  );
}
