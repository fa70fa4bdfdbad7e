import { Link } from 'react-router';
import { paths } from '@/lib/paths';
import { type Message, msg, t } from '@/lib/translate';

const texts = new Map<string | undefined, Message>([
  ['trainedAlgorithmicMedia', msg('This file says that AI made the picture.')],
  ['compositeWithTrainedAlgorithmicMedia', msg('This file says that AI made parts of the picture.')],
  ['compositeSynthetic', msg('This file says that a program made parts of the picture.')],
]);

/** The source that a file states, in words, with a link to the rest. */
export default function SourceNoteText({ source, url }: { source: string; url: string }) {
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
