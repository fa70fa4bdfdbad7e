import { upscale } from '@/features/tools/upscale';
import { ToolOfImage } from './tool-of-image';

export default function UpscaleOfRoute() {
  return <ToolOfImage tool={upscale} />;
}
