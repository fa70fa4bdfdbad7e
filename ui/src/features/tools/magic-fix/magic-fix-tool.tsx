import { lazy, Suspense, useMemo, useRef, useState } from 'react';
import { Button } from '@/components/button';
import { Icon } from '@/components/icon';
import { Notice } from '@/components/notice';
import type { Image } from '@/lib/api-types';
import { useConfig, useTool } from '@/lib/env';
import { isTooBig, tooBigText } from '@/lib/max-dimension';
import { notifyError } from '@/lib/notify';
import { costNote } from '../cost-note';
import { useResults } from '../results/get-results';
import { useSelected } from '../results/use-selected';
import { bringIntoSight, ResultsSide } from '../results-side';
import { RunProblemNotice } from '../run-problem-notice';
import { FixNote } from './fix-note';
import { magicFix } from './magic-fix';
import { isDrawn, shapesOf } from './mask/marks';
import { MaskEditor } from './mask/mask-editor';
import { maskFile } from './mask/mask-file';
import { useWork, workOf } from './mask/mask-store';
import { PromptField } from './prompt-field';
import { promptProblem, promptTexts } from './prompt-rules';
import { useRunMagicFix } from './run-magic-fix';

const RunningList = lazy(() => import('../under-way/running-list'));

type Problems = { prompt: string | null; mask: string | null };

const noProblems: Problems = { prompt: null, mask: null };
const NARROW = '(width < 64rem)';

/** The image to draw on and the prompt on the left, results on the right. */
export function MagicFixTool({ image }: { image: Image }) {
  const offer = useTool('magic-fix');
  const { limits } = useConfig();
  const [work] = useState(() => workOf(image.id));
  const { done, prompt } = useWork(image.id);
  const shapes = useMemo(() => shapesOf(done), [done]);
  const [problems, setProblems] = useState(noProblems);
  const [isPreparing, setPreparing] = useState(false);
  const [selectedId, setSelectedId] = useSelected();
  const results = useRef<HTMLElement>(null);
  const field = useRef<{ focus: () => void }>(null);
  const made = useResults(magicFix, image.id);
  const run = useRunMagicFix(image.id, {
    onDone: (fixed) => setSelectedId(fixed.at(-1)?.imageId ?? null),
    onAccepted: () => {
      work.setSpent(true);
      bringIntoSight(results.current, NARROW);
    },
    onEnded: () => work.setSpent(false),
    onRefused: ({ about }) => about === 'prompt' && field.current?.focus(),
  });

  const isOversize = isTooBig(image, limits.maxDimension);
  const isBlocked = run.isBusy || isPreparing || isOversize || !offer?.available;
  const selected = made.data?.find(({ imageId }) => imageId === selectedId) ?? made.data?.[0];

  async function start() {
    if (isBlocked) return;
    const found: Problems = {
      prompt: promptProblem(prompt, limits.maxPromptLength),
      mask: isDrawn(shapes) ? null : promptTexts.noArea,
    };
    if (found.prompt || found.mask) return refuse(found);
    setPreparing(true);
    try {
      const mask = await maskFile(shapes, image);
      // Everything that was drawn has been erased again.
      if (!mask) return refuse({ prompt: null, mask: promptTexts.noArea });
      setProblems(noProblems);
      run.start({ shapes, mask, prompt: prompt.trim() });
    } catch {
      notifyError(magicFix.texts.runFailed);
    } finally {
      setPreparing(false);
    }
  }

  function refuse(found: Problems) {
    setProblems(found);
    for (const problem of [found.mask, found.prompt]) if (problem) notifyError(problem);
    if (found.prompt) field.current?.focus();
  }

  const problemOf = (about: keyof Problems) =>
    problems[about] ?? (run.refusal?.about === about ? run.refusal.detail : null);

  function forget(about: keyof Problems) {
    setProblems((old) => ({ ...old, [about]: null }));
    run.forgetRefusal();
  }

  return (
    <div className="grid gap-8 lg:grid-cols-[3fr_2fr]">
      <section aria-labelledby="original" className="grid min-w-0 grid-cols-1 content-start gap-4">
        <h2 id="original" className="text-lg font-semibold">
          Original
        </h2>
        <MaskEditor
          image={image}
          shapes={shapes}
          problem={problemOf('mask')}
          onChange={() => forget('mask')}
          resultUrl={selected?.url ?? null}
        />
        <PromptField
          ref={field}
          prompt={prompt}
          problem={problemOf('prompt')}
          onPrompt={(next) => {
            work.setPrompt(next);
            forget('prompt');
          }}
          onSubmit={start}
        />
        <div className="grid gap-1.5">
          <Button
            size="lg"
            disabled={isBlocked}
            isBusy={isPreparing || run.starting !== null}
            onClick={start}
          >
            <Icon name="magic" />
            Magic Fix
          </Button>
          <p className="text-center text-xs text-soft">{costNote(offer, null)}</p>
        </div>
        {isOversize && <Notice tone="error">{tooBigText(limits.maxDimension)}</Notice>}
        <RunProblemNotice problem={run.problem} />
        {run.others.length > 0 && (
          <Suspense>
            <RunningList jobs={run.others} />
          </Suspense>
        )}
      </section>
      <ResultsSide
        ref={results}
        tool={magicFix}
        image={image}
        run={run}
        selectedId={selectedId}
        onSelect={setSelectedId}
        describe={(result) => <FixNote result={result} />}
      />
    </div>
  );
}
