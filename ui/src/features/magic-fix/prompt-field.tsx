import { type ReactNode, type Ref, useImperativeHandle, useRef } from 'react';
import { Disclosure } from '@/components/disclosure';
import { FieldProblem } from '@/components/field-problem';
import { classNames } from '@/lib/class-names';
import { useConfig } from '@/lib/env';
import { isTextField } from '@/lib/text-field';
import { t } from '@/lib/translate';
import { countLetters, possibilities, suggestions } from './prompt-rules';

/** The share of the limit from which the letter count is shown. */
const SHOW_COUNT_FROM = 0.8;

type PromptFieldProps = {
  ref: Ref<{ focus: () => void }>;
  prompt: string;
  problem: string | null;
  onPrompt: (prompt: string) => void;
  onSubmit: () => void;
  /** The button that starts the run, beside the field where there is room. */
  children: ReactNode;
};

/** The prompt for the marked area, with suggestions above it and the button that sends it. */
export function PromptField({ ref, prompt, problem, onPrompt, onSubmit, children }: PromptFieldProps) {
  const { magicFix, limits } = useConfig();
  const field = useRef<HTMLTextAreaElement>(null);
  const maxLetters = limits.maxPromptLength;
  const letters = countLetters(prompt);
  useImperativeHandle(ref, () => ({
    // A refusal may come at any time, also while the user types elsewhere.
    focus: () => isTextField(document.activeElement) || field.current?.focus(),
  }));

  /** Replaces the prompt in a way that the browser's Undo takes back: it may have taken long to type. */
  function replace(text: string) {
    field.current?.focus();
    field.current?.select();
    // It is deprecated, and the only way to do so.
    if (!document.execCommand?.('insertText', false, text)) onPrompt(text);
  }

  return (
    <div className="grid grid-cols-1 gap-x-3 gap-y-2 bar:grid-cols-[1fr_auto] bar:gap-y-1.5">
      <div className="col-span-full flex flex-wrap items-center gap-x-3 gap-y-2 bar:flex-nowrap">
        <label htmlFor="prompt" className="font-semibold">
          {t('Prompt')}
        </label>
        {/* One row in the bar, which must not grow over the picture. */}
        <ul
          aria-label={t('Suggestions')}
          // Otherwise, Firefox stops at what scrolls, besides the buttons in it.
          tabIndex={-1}
          className="flex flex-wrap gap-x-2 gap-y-1.5 bar:-m-1 bar:flex-nowrap bar:overflow-x-auto bar:p-1 bar:[scrollbar-width:none]"
        >
          {suggestions(magicFix).map((suggestion) => (
            <li key={suggestion} className="shrink-0">
              <button
                type="button"
                onClick={() => replace(suggestion)}
                className="min-h-9 thumb:min-h-11 rounded-full border border-line bg-surface px-3 text-sm font-medium hover:border-control hover:bg-sunken"
              >
                {suggestion}
              </button>
            </li>
          ))}
        </ul>
        {letters >= maxLetters * SHOW_COUNT_FROM && (
          <span
            className={classNames(
              'ml-auto shrink-0 text-xs tabular-nums',
              letters > maxLetters ? 'text-danger' : 'text-soft',
            )}
          >
            {t('{letters} of {maxLetters}', { letters, maxLetters })}
          </span>
        )}
      </div>
      <div className="grid min-w-0 content-start gap-1.5">
        {/* The invisible copy of the text makes the field as tall as the text, in every browser. */}
        <div
          data-text={prompt}
          className="grid grid-cols-1 [--most:max(4.5rem,min(12rem,25dvh))] bar:low:[--most:6rem] *:col-start-1 *:row-start-1 after:invisible after:col-start-1 after:row-start-1 after:max-h-(--most) after:overflow-hidden after:px-3 after:py-2.5 after:wrap-anywhere after:whitespace-pre-wrap after:content-[attr(data-text)_'\a0']"
        >
          <textarea
            ref={field}
            id="prompt"
            name="prompt"
            dir="auto"
            rows={2}
            value={prompt}
            placeholder={t('What should happen there?')}
            aria-required
            aria-invalid={problem !== null}
            aria-describedby={problem ? 'prompt-problem prompt-hint' : 'prompt-hint'}
            onChange={(event) => onPrompt(event.target.value)}
            onKeyDown={(event) => {
              if (event.key !== 'Enter' || !(event.ctrlKey || event.metaKey)) return;
              event.preventDefault();
              onSubmit();
            }}
            className={classNames(
              'size-full min-h-18 max-h-(--most) resize-none rounded-md border bg-surface px-3 py-2.5 wrap-anywhere placeholder:text-soft',
              problem ? 'border-danger' : 'border-control',
            )}
          />
        </div>
        {problem && <FieldProblem id="prompt-problem">{withQuotes(problem)}</FieldProblem>}
      </div>
      {children}
    </div>
  );
}

/** What prompts can ask for on this installation. */
export function PromptHint() {
  const { magicFix } = useConfig();
  return (
    <div className="grid gap-1">
      <p id="prompt-hint" className="text-sm text-soft">
        {possibilities(magicFix)}
      </p>
      {magicFix.demo && magicFix.vocabulary && (
        <Disclosure label={t('Words the demo model knows')}>
          <p className="mt-1">{magicFix.vocabulary.join(', ')}</p>
        </Disclosure>
      )}
    </div>
  );
}

/** Isolates quoted words: without `<bdi>`, several words of a right-to-left script would swap places. */
function withQuotes(sentence: string): ReactNode[] {
  return sentence.split(/(“[^”]*”)/).map((part, index) => {
    const isQuoted = index % 2 === 1;
    // biome-ignore lint/suspicious/noArrayIndexKey: the parts of a sentence never reorder.
    return isQuoted ? <bdi key={index}>{part}</bdi> : part;
  });
}
