import type { ReactNode } from 'react';
import { Button } from '@/components/button';
import { Icon } from '@/components/icon';
import { Notice } from '@/components/notice';
import { costNote, freeNote } from '@/features/catalog/cost-note';
import type { EditingTool, ToolAction } from '@/features/catalog/tool';
import { RunProblemNotice } from '@/features/runs/run-problem-notice';
import type { Image } from '@/lib/api-types';
import { useConfig, useTool } from '@/lib/env';
import { isTooBig, tooBigText } from '@/lib/max-dimension';
import type { useToolRun } from './use-tool-run';

type RunPanelProps = {
  tool: EditingTool;
  image: Image;
  run: ReturnType<typeof useToolRun>;
  onStart: () => void;
};

/** The tool's actions on the image, with their prices. */
export function RunPanel({ tool, image, run, onStart }: RunPanelProps) {
  const offer = useTool(tool.name);
  const maxDimension = useConfig().limits[tool.limit];

  const isFreeUsed = image.freeRuns[tool.freeRun] || run.isFreeRefused;
  const isOversize = isTooBig(image, maxDimension);
  const isBlocked = run.isBusy || isOversize;

  function start(action: ToolAction) {
    run.start(action);
    onStart();
  }

  return (
    <div className="grid gap-3">
      <ul className="grid gap-x-3 gap-y-4 sm:grid-cols-2 md:grid-cols-1 lg:grid-cols-2">
        {tool.paid.map((action) => (
          <Action key={action.path} note={costNote(offer, action.factor)}>
            <Button
              size="lg"
              disabled={isBlocked || !offer?.available}
              isBusy={run.starting === action}
              onClick={() => start(action)}
            >
              <Icon name={tool.icon} />
              {action.label}
            </Button>
          </Action>
        ))}
        <Action note={isFreeUsed ? 'Free run used for this image' : freeNote(tool.free, offer)}>
          <Button
            variant="secondary"
            size="lg"
            disabled={isBlocked || isFreeUsed || !offer?.freeAvailable}
            isBusy={run.starting === tool.free}
            onClick={() => start(tool.free)}
          >
            {tool.free.label}
          </Button>
        </Action>
      </ul>
      {isOversize && <Notice tone="error">{tooBigText(maxDimension)}</Notice>}
      <RunProblemNotice problem={run.problem} />
    </div>
  );
}

/** A button with its note. Alone in its row, it takes the whole row. */
function Action({ note, children }: { note: string; children: ReactNode }) {
  return (
    <li className="grid content-start gap-1.5 last:odd:col-span-full">
      {children}
      <p className="text-center text-xs text-soft">{note}</p>
    </li>
  );
}
