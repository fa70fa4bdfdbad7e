import { Icon } from '@/components/icon';
import { type Language, languages, switchLanguage, useLanguage } from '@/lib/language';
import { t } from '@/lib/translate';

export function LanguageSelect() {
  const { language } = useLanguage();
  return (
    <label className="inline-flex min-h-11 items-center gap-2 rounded-md px-3 hover:text-ink">
      <Icon name="language" className="size-4" />
      <select
        aria-label={t('Language')}
        value={language}
        className="min-h-11 cursor-pointer bg-transparent"
        onChange={({ target }) => void switchLanguage(target.value as Language)}
      >
        {Object.entries(languages).map(([code, name]) => (
          <option key={code} value={code} lang={code}>
            {name}
          </option>
        ))}
      </select>
    </label>
  );
}
