import { useState } from 'react';
import { Comparison } from '@/components/comparison';
import { Icon } from '@/components/icon';
import { dataText, t } from '@/lib/translate';
import { pictureUrl } from './picture-url';
import { useOpening } from './use-opening';

/** A before and an after picture of the same shape, made by `examples/make.py`. */
export type ExamplePair = {
  id: string;
  width: number;
  height: number;
  /** What the picture shows before the run. */
  alt: string;
  /** What it shows after the run. */
  result: string;
};

const tag =
  'absolute bottom-3 rounded-sm border border-line bg-surface px-2 py-1 text-xs font-medium text-ink';

type ExampleComparisonProps = {
  pair: ExamplePair;
  isFirst?: boolean;
  /** The prompt of the example; shown on the result. */
  prompt?: string;
};

export function ExampleComparison({ pair, isFirst = false, prompt }: ExampleComparisonProps) {
  const [settledCount, setSettledCount] = useState(0);
  const opening = useOpening(settledCount >= 2, isFirst);
  const { id, width, height } = pair;
  const [alt, result] = [dataText(pair.alt), dataText(pair.result)];
  const settle = () => setSettledCount((count) => count + 1);
  const picture = {
    width,
    height,
    className: 'size-full',
    decoding: 'async' as const,
    onLoad: settle,
    // A picture that fails to load shows its alt text.
    onError: settle,
    // Only the first picture of a page may delay other requests.
    ...(isFirst ? { fetchPriority: 'high' as const } : { loading: 'lazy' as const }),
  };

  return (
    <Comparison
      label={t('Compare before and after: {alt}', { alt })}
      className="relative rounded-lg border border-line bg-sunken has-focus-visible:outline-offset-2"
      style={{ aspectRatio: `${width} / ${height}` }}
      {...opening}
      after={
        <>
          <img src={pictureUrl(id, 'after')} alt={t('After: {result}', { result })} {...picture} />
          <span className={`${tag} right-3`}>{prompt ? t('After “{prompt}”', { prompt }) : t('After')}</span>
        </>
      }
      before={
        <>
          <img src={pictureUrl(id, 'before')} alt={t('Before: {alt}', { alt })} {...picture} />
          <span className={`${tag} left-3`}>{t('Before')}</span>
        </>
      }
    >
      {/* Hides half a pair: there is nothing to compare until both pictures have loaded. */}
      {settledCount < 2 && (
        <div
          data-loading
          aria-hidden="true"
          className="pointer-events-none absolute inset-0 grid place-items-center bg-sunken text-soft"
        >
          <Icon name="image" className="size-8" />
        </div>
      )}
    </Comparison>
  );
}
