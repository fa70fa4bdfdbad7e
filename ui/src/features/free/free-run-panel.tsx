import { Button } from '@/components/button';
import { ButtonLink } from '@/components/button-link';
import { Notice } from '@/components/notice';
import type { EditingTool } from '@/features/catalog/tool';
import { resultReady } from '@/features/runs/announcements';
import { passFocus } from '@/lib/pass-focus';
import { t } from '@/lib/translate';
import type { ChosenImage } from '@/lib/use-chosen-image';
import type { SignUpLink } from './sign-up-card';
import type { useFreeRun } from './use-free-run';

type FreeRunPanelProps = {
  tool: EditingTool;
  /** Null for a run from before the page was left. */
  chosen: ChosenImage | null;
  run: ReturnType<typeof useFreeRun>;
  signUp: SignUpLink;
  onStart: (file: File) => void;
  onStartOver: () => void;
};

/** The actions on the image, and how its run ended. */
export function FreeRunPanel({ tool, chosen, run, signUp, onStart, onStartOver }: FreeRunPanelProps) {
  return (
    <div ref={passFocus} className="grid gap-3">
      {chosen && (
        <Button
          size="lg"
          disabled={!chosen.isReady || run.isRefused || run.result !== null}
          isBusy={run.isBusy}
          onClick={() => onStart(chosen.file)}
        >
          {t(tool.free.label)}
        </Button>
      )}
      {tool.paid.map(({ path, label }) => (
        <ButtonLink key={path} variant="secondary" {...signUp}>
          {t('{label} (Requires login)', { label: t(label) })}
        </ButtonLink>
      ))}
      <Button variant="secondary" onClick={onStartOver}>
        {run.result ? t('Choose another image') : t('Cancel')}
      </Button>
      <p aria-live="polite" className="sr-only">
        {run.result && t(resultReady)}
      </p>
      {run.isRefused && <Notice tone="warning">{t(tool.texts.freeExists)}</Notice>}
      {run.advice && <Notice tone="warning">{run.advice}</Notice>}
    </div>
  );
}
