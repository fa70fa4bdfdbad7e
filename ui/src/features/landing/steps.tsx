import { useConfig } from '@/lib/env';
import { t } from '@/lib/translate';
import { commonUpload, steps } from './texts';

export function Steps() {
  const { heic, avif } = useConfig().features;
  return (
    <section className="border-y border-line bg-surface" aria-labelledby="steps">
      <div className="page py-12 md:py-20">
        <h2 id="steps" className="text-xl font-bold md:text-2xl">
          {t('How it works')}
        </h2>
        <ol className="mt-8 grid gap-8 md:grid-cols-3 md:gap-6">
          {steps.map(({ id, title, text }, index) => (
            <li key={id} className="border-t-2 border-accent pt-4">
              <p className="text-sm font-semibold text-accent tabular-nums">{index + 1}</p>
              <h3 className="mt-1 text-lg font-semibold">{t(title)}</h3>
              <p className="mt-2 text-soft">{t(id === 'upload' && !(heic && avif) ? commonUpload : text)}</p>
            </li>
          ))}
        </ol>
      </div>
    </section>
  );
}
