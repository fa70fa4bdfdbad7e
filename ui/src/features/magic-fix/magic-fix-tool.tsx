import { useMemo, useRef, useState } from 'react';
import { Button } from '@/components/button';
import { Icon } from '@/components/icon';
import { LoadFailure } from '@/components/load-failure';
import { Notice } from '@/components/notice';
import { Skeleton } from '@/components/skeleton';
import { costNote } from '@/features/catalog/cost-note';
import { magicFix } from '@/features/catalog/magic-fix';
import { isDrawn, shapesOf } from '@/features/mask/marks';
import { MaskEditor } from '@/features/mask/mask-editor';
import { maskFile } from '@/features/mask/mask-file';
import { draftActions, useDraft, useMaskStore } from '@/features/mask/mask-store';
import { reachPixels } from '@/features/mask/reach';
import { useResults } from '@/features/results/get-results';
import { MadeFromLink } from '@/features/results/made-from-link';
import { ResultsSide, scrollToResults, selectAdded } from '@/features/results/results-side';
import { useSelectedResult } from '@/features/results/use-selected-result';
import { OtherJobs } from '@/features/runs/other-jobs';
import { RunProblemNotice } from '@/features/runs/run-problem-notice';
import type { Image } from '@/lib/api-types';
import { useConfig, useTool } from '@/lib/env';
import { isTooBig, tooBigText } from '@/lib/max-dimension';
import { notifyError } from '@/lib/notify';
import { t } from '@/lib/translate';
import { ExactSwitch } from './exact-switch';
import { FixNote } from './fix-note';
import { PromptField, PromptHint } from './prompt-field';
import { promptProblem, promptTexts } from './prompt-rules';
import { useFixRun } from './use-fix-run';
import { useProblems } from './use-problems';
import { usePromptMeaning } from './use-prompt-meaning';
import { useSeries } from './use-series';
import { urlsOf, useStage } from './use-stage';

/** Magic Fix on an image, and on the result of each fix. */
export function MagicFixTool({ image }: { image: Image }) {
  return <Editor key={useSeries(image)} image={image} />;
}

/** The mask editor and the prompt on the left, the results on the right. */
function Editor({ image }: { image: Image }) {
  const offer = useTool('magic-fix');
  const { limits, magicFix: abilities } = useConfig();
  const [selectedId, setSelectedId] = useSelectedResult();
  const stage = useStage(image, ({ imageId }) => setSelectedId(imageId));
  const { picture } = stage;
  const draft = useMemo(() => draftActions(picture.key), [picture.key]);
  const { done, prompt, isExact: chosenExact } = useDraft(picture.key);
  const shapes = useMemo(() => shapesOf(done), [done]);
  const isSelecting = useMaskStore(({ selections }) => selections.length > 0);
  const [isPreparing, setPreparing] = useState(false);
  const results = useRef<HTMLElement>(null);
  const promptField = useRef<{ focus: () => void }>(null);
  const list = useResults(magicFix, image.id);
  const run = useFixRun(image.id, stage.targetId, {
    onDone: (added) => selectAdded(results.current, added, setSelectedId),
    onStarted: (jobId, imageId, request) => {
      draftActions(request.picture).setRun(jobId, request.marks);
      // Undo may have moved to another picture in the meantime.
      if (request.picture !== picture.key) return;
      stage.showImage(imageId);
      scrollToResults(results.current);
    },
    // A phone shows the results by then, and the mask's own notice is far above.
    onRefused: ({ field, detail }) => (field === 'prompt' ? focusPrompt() : notifyError(detail)),
  });
  const problems = useProblems(run, focusPrompt);

  const meaning = usePromptMeaning(prompt, limits.maxPromptLength);
  const rule = abilities.reach.find(({ mode }) => mode === meaning?.mode);
  const isExact = chosenExact ?? rule?.exactByDefault ?? false;
  const reach = rule ? reachPixels(rule, image) : null;
  const isOversize = isTooBig(image, limits.maxDimension);
  // A run without the pending selection would charge for half of what the user meant.
  const isBusy = isSelecting || isPreparing || run.starting !== null;
  const isBlocked = stage.isLoading || run.isBusy || isBusy || isOversize || !offer?.available;
  const selected = list.data?.find(({ imageId }) => imageId === selectedId) ?? list.data?.[0];

  function focusPrompt() {
    promptField.current?.focus();
  }

  async function start() {
    if (isBlocked) return;
    const found = {
      prompt: promptProblem(prompt, limits.maxPromptLength) ?? meaning?.problem ?? null,
      mask: isDrawn(shapes) ? null : promptTexts.noArea(),
    };
    if (found.prompt || found.mask) return problems.show(found);
    setPreparing(true);
    try {
      const mask = await maskFile(shapes, picture);
      // The user has erased everything again.
      if (!mask) return problems.show({ prompt: null, mask: promptTexts.noArea() });
      problems.clearAll();
      run.start({
        picture: picture.key,
        imageIdOf: picture.imageId,
        shapes,
        marks: done,
        mask,
        prompt: prompt.trim(),
        isExact: chosenExact,
      });
    } catch {
      notifyError(t(magicFix.texts.runFailed));
    } finally {
      setPreparing(false);
    }
  }

  return (
    <div className="grid gap-8 lg:grid-cols-[3fr_2fr]">
      <section
        aria-labelledby="original"
        className="grid min-w-0 grid-cols-1 content-start gap-4 bar:low:gap-2"
      >
        <h2 id="original" className="text-lg font-semibold">
          {stage.isFixed ? t('Fixed so far') : t('Original')}
        </h2>
        {stage.isLoading && list.isPending ? (
          <Skeleton className="h-96 rounded-lg" />
        ) : stage.isLoading ? (
          <LoadFailure
            text={t(magicFix.texts.listFailed)}
            isTrying={list.isFetching}
            onTryAgain={list.refetch}
          />
        ) : (
          <MaskEditor
            image={picture}
            shapes={shapes}
            problem={problems.of('mask')}
            onChange={() => problems.clear('mask')}
            reach={isExact ? 0 : (reach ?? 0)}
            compared={stage.compared ?? (selected ? { ...urlsOf(selected), isBefore: false } : null)}
            runs={stage.runs}
          />
        )}
        <p aria-live="polite" className="sr-only">
          {stage.announcement}
        </p>
        {/* Stays visible while the user draws, with the reason why a run does not start. */}
        <div className="grid gap-3 bar:sticky bar:bottom-(--offline) bar:z-10 bar:border-t bar:border-line bar:bg-canvas bar:py-2">
          <PromptField
            ref={promptField}
            prompt={prompt}
            problem={problems.of('prompt') ?? meaning?.problem ?? null}
            onPrompt={(next) => {
              draft.setPrompt(next);
              problems.clear('prompt');
            }}
            onSubmit={start}
          >
            <div className="grid content-start gap-1.5 bar:w-48">
              <Button size="lg" disabled={isBlocked} isBusy={isBusy} onClick={start}>
                <Icon name="magic" />
                {isSelecting ? t('Selecting…') : t('Magic Fix')}
              </Button>
              <p className="text-center text-xs text-soft">{costNote(offer, null, image)}</p>
            </div>
          </PromptField>
          {isOversize && <Notice tone="error">{tooBigText(limits.maxDimension)}</Notice>}
          <RunProblemNotice problem={run.problem} />
        </div>
        <PromptHint />
        <ExactSwitch isExact={isExact} reach={reach} onChange={draft.setExact} />
        <MadeFromLink image={image} />
        <OtherJobs jobs={run.otherJobs} />
      </section>
      {/* In sight beside whatever part of the editor is. */}
      <div className="min-w-0 lg:sticky lg:top-20 lg:self-start lg:[--picture-height:max(11rem,min(60dvh,100dvh-28rem))] lg:has-[[data-strip]>:nth-child(2)]:[--picture-height:max(11rem,min(60dvh,100dvh-34rem))] bar:low:[&_h2]:mb-2">
        <ResultsSide
          ref={results}
          tool={magicFix}
          image={image}
          run={run}
          selectedId={selectedId}
          onSelect={setSelectedId}
          describe={(result) => <FixNote result={result} />}
          onContinue={stage.showResult}
          editedId={stage.shown?.imageId ?? null}
        />
      </div>
    </div>
  );
}
