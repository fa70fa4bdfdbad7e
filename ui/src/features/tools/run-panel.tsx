import type { ReactNode } from 'react';
import { Button } from '@/components/button';
import { Icon } from '@/components/icon';
import { Notice } from '@/components/notice';
import type { Image } from '@/lib/api-types';
import { useConfig, useTool } from '@/lib/env';
import { isTooBig, tooBigText } from '@/lib/max-dimension';
import { costNote, freeNote } from './cost-note';
import { RunProblemNotice } from './run-problem-notice';
import type { useRunTool } from './run-tool';
import type { EditingTool, ToolAction } from './tool';

type RunPanelProps = {
  tool: EditingTool;
  image: Image;
  run: ReturnType<typeof useRunTool>;
  onStart: () => void;
};

/** What can be done with the image, and what it costs. */
export function RunPanel({ tool, image, run, onStart }: RunPanelProps) {
  const offer = useTool(tool.name);
  const maxDimension = useConfig().limits[tool.limit];

  const isFreeUsed = image.freeRuns[tool.freeRun] || run.freeRefused;
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
          <Choice key={action.path} note={costNote(offer, action.factor)}>
            <Button
              size="lg"
              disabled={isBlocked || !offer?.available}
              isBusy={run.starting === action}
              onClick={() => start(action)}
            >
              <Icon name={tool.icon} />
              {action.label}
            </Button>
          </Choice>
        ))}
        <Choice note={isFreeUsed ? 'Free run used for this image' : freeNote(tool.free, offer)}>
          <Button
            look="secondary"
            size="lg"
            disabled={isBlocked || isFreeUsed || !offer?.freeAvailable}
            isBusy={run.starting === tool.free}
            onClick={() => start(tool.free)}
          >
            {tool.free.label}
          </Button>
        </Choice>
      </ul>
      {isOversize && <Notice tone="error">{tooBigText(maxDimension)}</Notice>}
      <RunProblemNotice problem={run.problem} />
    </div>
  );
}

/** A button and what must be known before it is clicked; alone in its row, it takes the whole row. */
function Choice({ note, children }: { note: string; children: ReactNode }) {
  return (
    <li className="grid content-start gap-1.5 last:odd:col-span-full">
      {children}
      <p className="text-center text-xs text-soft">{note}</p>
    </li>
  );
}
