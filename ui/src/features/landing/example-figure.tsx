import { ExampleComparison, type ExamplePair } from '@/features/examples/example-comparison';

type ExampleFigureProps = {
  example: ExamplePair & { title: string; model: string; credit: string; note?: string };
};

export function ExampleFigure({ example }: ExampleFigureProps) {
  const { title, model, credit, note } = example;
  return (
    <figure className="min-w-0">
      <ExampleComparison pair={example} />
      <figcaption className="mt-3">
        <span className="font-semibold">{title}</span>
        <span className="block text-sm text-soft text-pretty">
          Made by {model}
          {note && `, ${note}`}. {credit}.
        </span>
      </figcaption>
    </figure>
  );
}
