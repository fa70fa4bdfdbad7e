import { removeBackground } from '@/features/catalog/remove-background';
import { ToolStart } from './tool-start';

export default function RemoveBackgroundRoute() {
  return <ToolStart tool={removeBackground} />;
}
