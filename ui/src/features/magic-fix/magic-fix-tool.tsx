import { useMemo, useRef, useState } from 'react';
import { Button } from '@/components/button';
import { Icon } from '@/components/icon';
import { Notice } from '@/components/notice';
import { costNote } from '@/features/catalog/cost-note';
import { magicFix } from '@/features/catalog/magic-fix';
import { isDrawn, shapesOf } from '@/features/mask/marks';
import { MaskEditor } from '@/features/mask/mask-editor';
import { maskFile } from '@/features/mask/mask-file';
import { draftActions, useDraft } from '@/features/mask/mask-store';
import { reachPixels } from '@/features/mask/reach';
import { useResults } from '@/features/results/get-results';
import { ResultsSide, scrollToResults } from '@/features/results/results-side';
import { useSelectedResult } from '@/features/results/use-selected-result';
import { OtherJobs } from '@/features/runs/other-jobs';
import { RunProblemNotice } from '@/features/runs/run-problem-notice';
import type { Image } from '@/lib/api-types';
import { useConfig, useTool } from '@/lib/env';
import { isTooBig, tooBigText } from '@/lib/max-dimension';
import { notifyError } from '@/lib/notify';
import { ExactSwitch } from './exact-switch';
import { FixNote } from './fix-note';
import { PromptField } from './prompt-field';
import { promptProblem, promptTexts } from './prompt-rules';
import { useFixRun } from './use-fix-run';
import { usePromptMeaning } from './use-prompt-meaning';

type Problems = { prompt: string | null; mask: string | null };

const noProblems: Problems = { prompt: null, mask: null };
const NARROW = '(width < 64rem)';

/** The mask editor and the prompt on the left, the results on the right. */
export function MagicFixTool({ image }: { image: Image }) {
  const offer = useTool('magic-fix');
  const { limits, magicFix: abilities } = useConfig();
  const [draft] = useState(() => draftActions(image.id));
  const { done, prompt, isExact: chosenExact } = useDraft(image.id);
  const shapes = useMemo(() => shapesOf(done), [done]);
  const [problems, setProblems] = useState(noProblems);
  const [isPreparing, setPreparing] = useState(false);
  const [selectedId, setSelectedId] = useSelectedResult();
  const results = useRef<HTMLElement>(null);
  const promptField = useRef<{ focus: () => void }>(null);
  const list = useResults(magicFix, image.id);
  const run = useFixRun(image.id, {
    onDone: (added) => setSelectedId(added.at(-1)?.imageId ?? null),
    onAccepted: () => {
      draft.setSubmitted(true);
      scrollToResults(results.current, NARROW);
    },
    onUnsuccessful: () => draft.setSubmitted(false),
    onRefused: ({ field }) => field === 'prompt' && promptField.current?.focus(),
  });

  const meaning = usePromptMeaning(prompt, limits.maxPromptLength);
  const rule = abilities.reach.find(({ mode }) => mode === meaning?.mode);
  const isExact = chosenExact ?? rule?.exactByDefault ?? false;
  const reach = rule ? reachPixels(rule, image) : null;
  const isOversize = isTooBig(image, limits.maxDimension);
  const isBlocked = run.isBusy || isPreparing || isOversize || !offer?.available;
  const selected = list.data?.find(({ imageId }) => imageId === selectedId) ?? list.data?.[0];

  async function start() {
    if (isBlocked) return;
    const found: Problems = {
      prompt: promptProblem(prompt, limits.maxPromptLength) ?? meaning?.problem ?? null,
      mask: isDrawn(shapes) ? null : promptTexts.noArea,
    };
    if (found.prompt || found.mask) return refuse(found);
    setPreparing(true);
    try {
      const mask = await maskFile(shapes, image);
      // The user has erased everything again.
      if (!mask) return refuse({ prompt: null, mask: promptTexts.noArea });
      setProblems(noProblems);
      run.start({ shapes, mask, prompt: prompt.trim(), isExact: chosenExact });
    } catch {
      notifyError(magicFix.texts.runFailed);
    } finally {
      setPreparing(false);
    }
  }

  function refuse(found: Problems) {
    setProblems(found);
    for (const problem of [found.mask, found.prompt]) if (problem) notifyError(problem);
    if (found.prompt) promptField.current?.focus();
  }

  const problemOf = (field: keyof Problems) =>
    problems[field] ?? (run.refusal?.field === field ? run.refusal.detail : null);

  function clearProblem(field: keyof Problems) {
    setProblems((old) => ({ ...old, [field]: null }));
    run.clearRefusal();
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
          onChange={() => clearProblem('mask')}
          reach={isExact ? 0 : (reach ?? 0)}
          resultUrl={selected?.url ?? null}
        />
        <PromptField
          ref={promptField}
          prompt={prompt}
          problem={problemOf('prompt') ?? meaning?.problem ?? null}
          onPrompt={(next) => {
            draft.setPrompt(next);
            clearProblem('prompt');
          }}
          onSubmit={start}
        />
        <ExactSwitch isExact={isExact} reach={reach} onChange={draft.setExact} />
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
          <p className="text-center text-xs text-soft">{costNote(offer, null, image)}</p>
        </div>
        {isOversize && <Notice tone="error">{tooBigText(limits.maxDimension)}</Notice>}
        <RunProblemNotice problem={run.problem} />
        <OtherJobs jobs={run.otherJobs} />
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
