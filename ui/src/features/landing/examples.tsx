import { ComparisonFix } from '@/components/comparison-fix';
import { Tabs } from '@/components/tabs';
import { ExampleFigure } from './example-figure';
import { ExampleSection } from './example-section';
import examples from './examples.json';
import { sections } from './texts';

/** The three tools, each with pictures that Retouch really made. */
export function Examples() {
  return (
    <>
      <ExampleSection texts={sections.magicFix}>
        <Tabs
          label="Examples of Magic Fix"
          tabs={examples.fixes.map((example) => ({
            title: example.title,
            content: <ComparisonFix example={example} />,
          }))}
        />
      </ExampleSection>
      <ExampleSection texts={sections.cutOuts} isRaised>
        <div className="grid gap-6 md:grid-cols-3">
          {examples.cutOuts.map((example) => (
            <ExampleFigure key={example.id} example={example} />
          ))}
        </div>
      </ExampleSection>
      <ExampleSection texts={sections.upscales}>
        <div className="grid gap-6 md:grid-cols-2">
          {examples.upscales.map((example) => (
            <ExampleFigure key={example.id} example={example} />
          ))}
        </div>
      </ExampleSection>
    </>
  );
}
