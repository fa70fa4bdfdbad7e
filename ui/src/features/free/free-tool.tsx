import { Suspense } from 'react';
import { ButtonLink } from '@/components/button-link';
import { ChosenPreview } from '@/components/chosen-preview';
import { FileDrop } from '@/components/file-drop';
import { lazyWithRetry } from '@/components/lazy-with-retry';
import { Notice } from '@/components/notice';
import { Skeleton } from '@/components/skeleton';
import { useIncomingFiles } from '@/components/use-incoming-files';
import { isPaidBetter } from '@/features/catalog/bound-models';
import type { EditingTool } from '@/features/catalog/tool';
import { useConfig, useTool } from '@/lib/env';
import { formatBytes } from '@/lib/format';
import type { ImageSize } from '@/lib/image-size';
import { keepPicture } from '@/lib/kept-picture';
import { paths } from '@/lib/paths';
import { pictureTypes } from '@/lib/picture-kind';
import { t } from '@/lib/translate';
import { useChosenImage } from '@/lib/use-chosen-image';
import { useKeptPicture } from '@/lib/use-kept-picture';
import { FreeProgress, loadJobProgress } from './free-progress';
import { FreeRunPanel } from './free-run-panel';
import type { FreeResult } from './free-runs';
import { FreeSample } from './free-sample';
import { SignUpCard, type SignUpLink } from './sign-up-card';
import { useFreeRun } from './use-free-run';

const loadResultView = () => import('./free-result-view');
const FreeResultView = lazyWithRetry(loadResultView);

function originalSize({ width, height, factor }: FreeResult): ImageSize {
  const scale = factor ?? 1;
  return { x: width / scale, y: height / scale };
}

/** A tool for visitors: one image, and nothing is saved. */
export default function FreeTool({ tool }: { tool: EditingTool }) {
  const { limits, features } = useConfig();
  const maxDimension = limits[tool.limit];
  const offer = useTool(tool.name);
  const { chosen, choose, clear } = useChosenImage(maxDimension);
  const run = useFreeRun(tool);
  const canChoose = !run.isBusy && !run.result;
  useKeptPicture(canChoose ? take : null);
  const accept = useIncomingFiles(canChoose ? { onFile: take } : null);

  function take(file: File) {
    // Clear the previous picture's error.
    run.reset();
    void choose(file);
  }

  if (!offer?.freeAvailable) {
    return (
      <Notice>
        {t('This server offers no free runs.')}{' '}
        <ButtonLink to={paths.signup} state={tool.pagePath} variant="quiet" size="sm" className="underline">
          {t('Sign up')}
        </ButtonLink>
      </Notice>
    );
  }

  function start(file: File) {
    // Loads during the upload, after which the connection may be lost.
    for (const load of [loadJobProgress, loadResultView]) void load().catch(() => {});
    run.start(file);
  }

  /** A run from before the page was left: the file is gone, its result is not. */
  const isResumed = !chosen && (run.isBusy || run.result !== null);

  /** The sign-up comes back to this tool, with the picture. */
  const signUp: SignUpLink = {
    to: paths.signup,
    state: tool.pagePath,
    onClick: () => void (chosen && keepPicture(chosen.file)),
  };

  const progress = <FreeProgress tool={tool} run={run} />;
  const placeholder = (
    <div className="relative">
      <Skeleton className="h-96 rounded-lg" />
      {progress}
    </div>
  );
  const original = chosen ? chosen.size && chosen.url : run.originalUrl;
  const size = chosen ? chosen.size : run.result && originalSize(run.result);
  const sampled = tool.name === 'upscale' &&
    original &&
    size &&
    !chosen?.isPreview &&
    !chosen?.problem &&
    isPaidBetter(offer, 2, size) && { original, size, free: run.result?.url ?? null };

  function startOver() {
    run.reset();
    clear();
    // On a phone, the button is far below the place of the next picture.
    window.scrollTo(0, 0);
  }

  return (
    <div className="grid gap-6 lg:grid-cols-[1fr_20rem] lg:gap-8">
      {/* The picture leaves room for the buttons below it. */}
      <div className="min-w-0 [--picture-height:max(10rem,min(60dvh,100dvh-25rem))] lg:[--picture-height:max(10rem,min(60dvh,100dvh-23rem))] lg:low:[--picture-height:max(10rem,min(60dvh,100dvh-20.5rem))]">
        {!chosen && !isResumed ? (
          <FileDrop
            hint={t('Up to {side} × {side} px and {bytes}', {
              side: maxDimension,
              bytes: formatBytes(limits.maxUploadBytes),
            })}
            types={pictureTypes(features)}
            onFiles={accept}
          />
        ) : run.result ? (
          <Suspense fallback={chosen ? <ChosenPreview chosen={chosen} /> : placeholder}>
            <FreeResultView
              result={run.result}
              alt={t(tool.texts.result)}
              original={original}
              isCutout={tool.isCutout}
            />
          </Suspense>
        ) : chosen ? (
          <ChosenPreview chosen={chosen} overlay={progress} />
        ) : (
          placeholder
        )}
      </div>
      <div className="grid content-start gap-6">
        {(chosen || isResumed) && (
          <FreeRunPanel
            tool={tool}
            chosen={chosen}
            run={run}
            signUp={signUp}
            onStart={start}
            onStartOver={startOver}
          />
        )}
        {sampled && <FreeSample {...sampled} />}
        <SignUpCard tool={tool} signUp={signUp} />
      </div>
    </div>
  );
}
