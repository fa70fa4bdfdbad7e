import { Icon, type IconName } from '@/components/icon';
import type { Verification } from '@/lib/api-types';
import { classNames } from '@/lib/class-names';
import { type Message, msg, t } from '@/lib/translate';

type Verdict = { icon: IconName; tone: string; title: Message; text: Message };

const neutral = 'bg-sunken text-ink';
const good = 'bg-accent-wash text-ink';

const verdicts: Record<Verification['state'] | 'ours', Verdict> = {
  absent: {
    icon: 'info',
    tone: neutral,
    title: msg('No Content Credentials'),
    text: msg(
      'Nobody signed how this picture was made. That proves nothing: most pictures have no credentials, and many websites and messengers remove them.',
    ),
  },
  invalid: {
    icon: 'warning',
    tone: 'bg-danger-wash text-danger',
    title: msg('These Content Credentials are not valid'),
    text: msg(
      'They are damaged, or the picture was changed after it was signed. Do not rely on what they say.',
    ),
  },
  valid: {
    icon: 'info',
    tone: neutral,
    title: msg('Valid, but the signer is unknown here'),
    text: msg(
      'The picture has not changed since it was signed. This server does not know the signer, and anybody can make a certificate with any name.',
    ),
  },
  trusted: {
    icon: 'check',
    tone: good,
    title: msg('Valid, by a trusted signer'),
    text: msg(
      'The picture has not changed since it was signed, and whoever runs this server trusts the signer.',
    ),
  },
  ours: {
    icon: 'check',
    tone: good,
    title: msg('Valid, signed by this server'),
    text: msg('Retouch made this file here, and it has not changed since.'),
  },
};

/** Whether the marks of a picture are trustworthy, in a few words. */
export function verdictOf({ state, claim }: Verification): Verdict {
  const isOurs = (state === 'valid' || state === 'trusted') && claim?.signature?.isOurs;
  return verdicts[isOurs ? 'ours' : state];
}

export function VerdictBox({ report }: { report: Verification }) {
  const { icon, tone, title, text } = verdictOf(report);
  return (
    <div className={classNames('flex gap-3 rounded-lg p-4 md:p-6', tone)}>
      <Icon name={icon} className="mt-0.5 size-6" />
      <div className="min-w-0">
        <h2 className="text-lg font-semibold">{t(title)}</h2>
        <p className="mt-1 max-w-2xl text-sm">{t(text)}</p>
      </div>
    </div>
  );
}
