import { Comparison } from '@/components/comparison';
import { PlacedImage } from '@/components/pan-zoom/placed-image';
import type { View } from '@/components/pan-zoom/view';
import type { ImageSize } from '@/lib/image-size';
import { t } from '@/lib/translate';

type CompareSliderProps = { beforeUrl: string; size: ImageSize; view: View };

const tag = 'pointer-events-none absolute top-3 rounded-sm bg-surface px-2 py-1 text-xs font-medium text-ink';

/** Covers the left of the editor with the picture from before, up to a line that can be dragged. */
export function CompareSlider({ beforeUrl, size, view }: CompareSliderProps) {
  return (
    <Comparison
      label={t('Compare before and after')}
      before={<PlacedImage src={beforeUrl} size={size} view={view} />}
      className="absolute inset-0 rounded-lg"
    >
      <span className={`${tag} left-3`}>{t('Before')}</span>
      <span className={`${tag} right-3`}>{t('After')}</span>
    </Comparison>
  );
}
