import type { ToolName } from './api-types';

export const toolNames: Record<ToolName, string> = {
  'remove-background': 'Remove Background',
  upscale: 'Upscale',
  'magic-fix': 'Magic Fix',
};
