import { ExampleComparison, type ExamplePair } from '@/features/examples/example-comparison';
import { dataText, t } from '@/lib/translate';

type ExampleFigureProps = {
  example: ExamplePair & { title: string; model: string; credit: string; note?: string };
};

export function ExampleFigure({ example }: ExampleFigureProps) {
  const { title, model, credit, note } = example;
  return (
    <figure className="min-w-0">
      <ExampleComparison pair={example} />
      <figcaption className="mt-3">
        <span className="font-semibold">{dataText(title)}</span>
        <span className="block text-sm text-soft text-pretty">
          {note
            ? t('Made by {model}, {note}.', { model, note: dataText(note) })
            : t('Made by {model}.', { model })}{' '}
          {dataText(credit)}.
        </span>
      </figcaption>
    </figure>
  );
}
