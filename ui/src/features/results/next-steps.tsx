import { useId } from 'react';
import { Button } from '@/components/button';
import { Icon } from '@/components/icon';
import type { Tool } from '@/features/catalog/tool';
import type { Result } from '@/lib/api-types';
import { useConfig } from '@/lib/env';
import { toolName } from '@/lib/tool-names';
import { t } from '@/lib/translate';
import { nextTools } from './next-tools';
import { useAsImage } from './use-as-image';

type NextStepsProps = {
  tool: Tool;
  result: Result;
  /** This page is already editing the result. */
  isEdited: boolean;
  /** Edits the result on this page, if its tool can do that. */
  onContinue?: ((result: Result) => void) | undefined;
};

/** Opens a result in any tool that can edit it. */
export function NextSteps({ tool: from, result, isEdited, onContinue }: NextStepsProps) {
  const id = useId();
  const { open, opening } = useAsImage(result.imageId);
  const steps = nextTools(useConfig(), from, result).filter(({ tool }) => !(isEdited && tool === from));
  if (steps.length === 0) return null;
  return (
    <section aria-labelledby={id} className="@container grid gap-2">
      <h3 id={id} className="text-sm font-semibold">
        {t('Edit this result')}
      </h3>
      <div className="flex flex-wrap gap-2 @max-md:grid">
        {steps.map(({ tool, reason }) => (
          <Button
            key={tool.name}
            variant="secondary"
            size="sm"
            className="max-sm:whitespace-normal"
            disabled={reason !== null || (opening !== null && opening !== tool)}
            isBusy={opening === tool}
            aria-describedby={reason === null ? undefined : `${id}-${tool.name}`}
            onClick={() => (tool === from && onContinue ? onContinue(result) : open(tool))}
          >
            <Icon name={tool.icon} />
            {t('Use in {tool}', { tool: toolName(tool.name) })}
          </Button>
        ))}
      </div>
      {steps.map(
        ({ tool, reason }) =>
          reason && (
            <p key={tool.name} id={`${id}-${tool.name}`} className="text-xs text-soft">
              {reason}
            </p>
          ),
      )}
    </section>
  );
}
