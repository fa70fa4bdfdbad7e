import { Link } from 'react-router';
import type { Result } from '@/lib/api-types';
import { paths } from '@/lib/paths';
import { type Message, msg, t } from '@/lib/translate';

const texts = new Map<string | undefined, Message>([
  ['trainedAlgorithmicMedia', msg('This file says that AI made the picture.')],
  ['compositeWithTrainedAlgorithmicMedia', msg('This file says that AI made parts of the picture.')],
  ['compositeSynthetic', msg('This file says that a program made parts of the picture.')],
]);

/** Tells the user about the marks of the file, if it has any. */
export function SourceNote({ result: { source, url } }: { result: Pick<Result, 'url' | 'source'> }) {
  if (!source) return null;
  const text = texts.get(source.split('/').at(-1)) ?? msg('This file says how the picture was made.');
  return (
    <p className="text-sm text-soft">
      {t(text)}{' '}
      <Link
        to={paths.verify}
        state={{ picture: { url, name: 'downloaded_image.png' } }}
        className="inline-flex thumb:min-h-11 items-center rounded-sm text-accent underline underline-offset-4"
      >
        {t('See what it says')}
      </Link>
    </p>
  );
}
