import { quoted } from '@/lib/format';
import { dataText, t } from '@/lib/translate';
import { ExampleComparison, type ExamplePair } from './example-comparison';
import { pictureUrl } from './picture-url';

type Fix = ExamplePair & {
  title: string;
  text: string;
  prompt: string;
  note: string | null;
  isDemo: boolean;
  model: string;
  credit: string;
};

/** One Magic Fix of a photo: the mask, the prompt and the result. */
export function FixExample({ example }: { example: Fix }) {
  const { id, text, prompt, note, isDemo, model, credit } = example;
  return (
    <div className="@container">
      <div className="grid gap-6 @3xl:grid-cols-[3fr_2fr] @3xl:items-center">
        <ExampleComparison key={id} pair={example} />
        <div className="grid gap-4">
          <p className="text-lg">{dataText(text)}</p>
          <figure className="flex flex-wrap items-center gap-x-4 gap-y-3 rounded-md border border-line bg-surface p-3">
            <img
              src={pictureUrl(id, 'marked')}
              alt={t('The marked area')}
              width={120}
              height={80}
              loading="lazy"
              decoding="async"
              className="w-30 rounded-sm bg-sunken"
            />
            <figcaption className="min-w-0 flex-1 text-sm text-soft">
              {t('Mark it, and say')}
              <strong className="block text-base text-ink">{quoted(prompt)}</strong>
            </figcaption>
          </figure>
          <p className="text-sm text-soft">
            {isDemo
              ? t(
                  'Made by {model}, a demo that paints colored shapes and patterns until a larger model is installed.',
                  { model },
                )
              : t('Made by {model}.', { model })}{' '}
            {note && dataText(note)} {dataText(credit)}.
          </p>
        </div>
      </div>
    </div>
  );
}
