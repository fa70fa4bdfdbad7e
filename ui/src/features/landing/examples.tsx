import cutouts from '@/features/examples/cutouts.json';
import FixTabs from '@/features/examples/fix-tabs';
import upscales from '@/features/examples/upscales.json';
import { t } from '@/lib/translate';
import { ExampleFigure } from './example-figure';
import { ExampleSection } from './example-section';
import { sections } from './texts';

/** One section per tool. Retouch made every result shown. */
export function Examples() {
  return (
    <>
      <ExampleSection texts={sections.magicFix}>
        <FixTabs label={t('Examples of Magic Fix')} />
      </ExampleSection>
      <ExampleSection texts={sections.cutouts} isRaised>
        <div className="grid gap-6 md:grid-cols-3">
          {cutouts.map((example) => (
            <ExampleFigure key={example.id} example={example} />
          ))}
        </div>
      </ExampleSection>
      <ExampleSection texts={sections.upscales}>
        <div className="grid gap-6 md:grid-cols-2">
          {upscales.map((example) => (
            <ExampleFigure key={example.id} example={example} />
          ))}
        </div>
      </ExampleSection>
    </>
  );
}
