import { Button } from '@/components/button';
import { Icon } from '@/components/icon';
import { PageSection } from '@/components/page-section';
import { t } from '@/lib/translate';
import { useExportData } from './export-data';

export function DataSection() {
  const exporting = useExportData();
  return (
    <PageSection
      title={t('Your data')}
      text={t(
        'Everything stored about you, in one JSON file. It links to your images; the links work for at least an hour.',
      )}
    >
      <div>
        <Button variant="secondary" isBusy={exporting.isPending} onClick={() => exporting.mutate()}>
          {!exporting.isPending && <Icon name="download" />}
          {t('Export my data')}
        </Button>
      </div>
    </PageSection>
  );
}
