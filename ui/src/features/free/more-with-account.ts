import type { EditingTool } from '@/features/catalog/tool';
import type { ToolOffer } from '@/lib/api-types';

/** Whether paid runs of this tool have a factor or a model that free runs do not have. */
export function isMoreWithAccount({ paid, free }: EditingTool, { available, models }: ToolOffer): boolean {
  const shared = new Set(models.allFree.map(({ sha256 }) => sha256));
  const hasOwnModel = models.allPaid.some(({ sha256 }) => !shared.has(sha256));
  return available && (hasOwnModel || paid.some(({ factor }) => factor !== free.factor));
}
