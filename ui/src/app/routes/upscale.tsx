import { upscale } from '@/features/tools/upscale';
import { ToolStart } from './tool-start';

export default function UpscaleRoute() {
  return <ToolStart tool={upscale} />;
}
