import { Button } from '@/components/button';
import { Icon } from '@/components/icon';
import { useExportData } from './export-data';
import { Section } from './section';

export function DataSection() {
  const exporting = useExportData();
  return (
    <Section
      title="Your data"
      text="Everything this server keeps of you, in one JSON file. Your images are links in it, which work for an hour at least."
    >
      <div>
        <Button look="secondary" isBusy={exporting.isPending} onClick={() => exporting.mutate()}>
          {!exporting.isPending && <Icon name="download" />}
          Export my data
        </Button>
      </div>
    </Section>
  );
}
