import type { ComponentProps } from 'react';
import { Icon } from '@/components/icon';
import { Tabs } from '@/components/tabs';
import { Scene, scratches } from './scene';

type Look = ComponentProps<typeof Scene>;
type Example = {
  title: string;
  text: string;
  prompt: string;
  before: Look;
  after: Look;
  mask: [path: string, width: number];
};

const examples: Example[] = [
  {
    title: 'Edit Details',
    text: 'Say what a part of the picture should become.',
    prompt: 'a blue pot',
    before: {},
    after: { pot: '#5b8fd0' },
    mask: ['M200 190h104M206 206h92M212 222h80M216 238h72M222 250h60', 22],
  },
  {
    title: 'Restore Images',
    text: 'Follow scratches and creases with a thin brush.',
    prompt: 'restore the scratches',
    before: { isScratched: true },
    after: {},
    mask: [scratches, 11],
  },
  {
    title: 'Remove Details',
    text: 'Cover what disturbs; what is around it goes on.',
    prompt: 'remove the cup',
    before: { hasCup: true },
    after: {},
    mask: ['M98 220h58M100 236h60M102 252h40', 24],
  },
  {
    title: 'Enhance Details',
    text: 'Bring out what is blurred or too small.',
    prompt: 'enhance the leaves',
    before: { isBlurred: true },
    after: {},
    mask: ['M258 70 254 150M310 88 262 158M196 124 246 164M284 110 250 130', 34],
  },
  {
    title: 'Add Details',
    text: 'Mark a place, and say what should be there.',
    prompt: 'add a red flower',
    before: {},
    after: { hasFlower: true },
    mask: ['M180 72h32M178 94h36M202 108 240 168', 32],
  },
];

/** What Magic Fix is for. Openly drawings: nothing here plays a result. */
export default function FixExamples() {
  return (
    <section aria-labelledby="examples" className="min-w-0">
      <h2 id="examples" className="mb-4 text-lg font-semibold">
        What it is for
      </h2>
      <Tabs
        label="Examples"
        tabs={examples.map((example) => ({ title: example.title, content: <Drawn example={example} /> }))}
      />
    </section>
  );
}

function Drawn({ example: { text, prompt, before, after, mask } }: { example: Example }) {
  const [path, width] = mask;
  return (
    <div className="grid gap-4 rounded-lg border border-line bg-surface p-4 md:p-6">
      <p>{text}</p>
      <div className="grid grid-cols-2 gap-3">
        <figure>
          <Scene {...before} mask={<path d={path} strokeWidth={width} />} />
          <figcaption className="mt-2 text-sm text-soft">Before, with the mask</figcaption>
        </figure>
        <figure>
          <Scene {...after} />
          <figcaption className="mt-2 text-sm text-soft">After</figcaption>
        </figure>
      </div>
      <div className="flex flex-wrap items-center justify-between gap-x-4 gap-y-2">
        <p className="flex min-w-0 items-center gap-2 rounded-md bg-sunken px-3 py-2 font-semibold">
          <Icon name="magic" />
          {`“${prompt}”`}
        </p>
        <p className="text-sm text-soft">Drawings, not results</p>
      </div>
    </div>
  );
}
