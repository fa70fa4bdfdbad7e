import { magicFix } from '@/features/catalog/magic-fix';
import { removeBackground } from '@/features/catalog/remove-background';
import type { Tool } from '@/features/catalog/tool';
import { upscale } from '@/features/catalog/upscale';
import type { Config, Result } from '@/lib/api-types';
import { isTooBig } from '@/lib/max-dimension';
import { toolName } from '@/lib/tool-names';
import { t } from '@/lib/translate';

/** A tool that a result can be used in, and why not if it is impossible. */
type NextTool = { tool: Tool; reason: string | null };

/** Returns the tools that can edit a result of `from`. A cutout has no background left to remove. */
export function nextTools({ tools, limits }: Config, from: Tool, result: Result): NextTool[] {
  const { width, height } = result;
  return [magicFix, removeBackground, upscale]
    .filter((tool) => tools.some((offer) => offer.tool === tool.name && offer.available))
    .filter((tool) => !(tool.isCutout && from.isCutout))
    .map((tool) => {
      const limit = limits[tool.limit];
      const isPossible = !isTooBig({ x: width, y: height }, limit);
      const reason = t(
        '{tool} takes images up to {limit} × {limit} px. This result is {width} × {height} px.',
        { tool: toolName(tool.name), limit, width, height },
      );
      return { tool, reason: isPossible ? null : reason };
    });
}
