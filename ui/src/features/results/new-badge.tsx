import { t } from '@/lib/translate';

export function NewBadge() {
  return (
    <span className="rounded-full bg-accent px-2 py-0.5 text-xs font-bold tracking-wide text-on-accent">
      {t('NEW')}
    </span>
  );
}
