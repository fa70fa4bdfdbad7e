import type { ReactNode } from 'react';
import { LoadFailure } from '@/components/load-failure';
import { PictureBox } from '@/components/picture-box';
import { Skeleton } from '@/components/skeleton';
import type { Tool } from '@/features/catalog/tool';
import type { Image, Result } from '@/lib/api-types';
import { t } from '@/lib/translate';
import { useDeleteResult } from './delete-result';
import { useResults } from './get-results';
import { ResultGallery } from './result-gallery';
import { useNewMarks } from './use-new-marks';

type ResultsPanelProps = {
  tool: Tool;
  image: Image;
  selectedId: string | null;
  onSelect: (resultId: string | null) => void;
  onDeleted: () => void;
  progress: ReactNode;
  describe?: (result: Result) => ReactNode;
  onContinue?: (result: Result) => void;
  editedId?: string | null;
};

/** The results of one tool for the image. */
export function ResultsPanel(props: ResultsPanelProps) {
  const { tool, image, onSelect, onDeleted } = props;
  const results = useResults(tool, image.id);
  // After a deletion the first result is selected.
  const remove = useDeleteResult(tool, image.id, () => {
    onSelect(null);
    onDeleted();
  });

  const marked = useNewMarks(`${tool.name} ${image.id}`, results.data);

  if (results.isPending) {
    return (
      <PictureBox width={image.x} height={image.y}>
        <Skeleton className="absolute inset-0" />
      </PictureBox>
    );
  }
  if (!marked) {
    return (
      <LoadFailure
        text={t(tool.texts.listFailed)}
        isTrying={results.isFetching}
        onTryAgain={results.refetch}
      />
    );
  }
  return (
    <ResultGallery
      {...props}
      results={marked}
      original={image}
      onDelete={remove.mutate}
      isDeleting={remove.isPending}
      empty={t('Start a run to see its result here.')}
    />
  );
}
