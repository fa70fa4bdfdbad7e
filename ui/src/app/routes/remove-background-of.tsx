import { removeBackground } from '@/features/tools/remove-background';
import { ToolOfImage } from './tool-of-image';

export default function RemoveBackgroundOfRoute() {
  return <ToolOfImage tool={removeBackground} />;
}
