import { upscale } from '@/features/catalog/upscale';
import { ToolImage } from './tool-image';

export default function UpscaleImageRoute() {
  return <ToolImage tool={upscale} />;
}
