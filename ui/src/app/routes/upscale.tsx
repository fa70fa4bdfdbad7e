import { upscale } from '@/features/catalog/upscale';
import { ToolStart } from './tool-start';

export default function UpscaleRoute() {
  return <ToolStart tool={upscale} />;
}
