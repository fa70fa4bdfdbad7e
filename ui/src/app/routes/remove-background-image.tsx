import { removeBackground } from '@/features/catalog/remove-background';
import { ToolImage } from './tool-image';

export default function RemoveBackgroundImageRoute() {
  return <ToolImage tool={removeBackground} />;
}
