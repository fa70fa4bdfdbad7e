import { t } from '@/lib/translate';

/** Explains Content Credentials and their limits. */
export function AboutCredentials() {
  return (
    <section aria-labelledby="about" className="mt-12 md:mt-20">
      <h2 id="about" className="text-lg font-semibold">
        {t('What are Content Credentials?')}
      </h2>
      <div className="mt-4 grid gap-x-12 gap-y-6 text-soft md:grid-cols-2">
        <div className="grid content-start gap-3">
          <p>
            {t(
              'Content Credentials are signed notes inside a picture’s file. They say who made or changed it, with which program, and which pictures went in. Cameras, editors and AI tools write them in an open format, C2PA.',
            )}
          </p>
          <p>
            {t(
              'A valid signature means that the named signer wrote these notes, and that the picture has not changed since.',
            )}
          </p>
        </div>
        <div className="grid content-start gap-3">
          <p>
            {t(
              'They do not say whether a picture shows the truth, or whether the notes are true. That depends on whether you trust the signer.',
            )}
          </p>
          <p>
            {t(
              'A picture without them is not suspicious, and may still be made by AI. Many programs and websites remove them when a picture is copied, converted or posted.',
            )}
          </p>
        </div>
      </div>
    </section>
  );
}
