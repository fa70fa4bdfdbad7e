import { type Message, msg, t } from '@/lib/translate';
import type { ToolName } from './api-types';

const names: Record<ToolName, Message> = {
  'remove-background': msg('Remove Background'),
  upscale: msg('Upscale'),
  'magic-fix': msg('Magic Fix'),
};

export const toolName = (tool: ToolName) => t(names[tool]);
