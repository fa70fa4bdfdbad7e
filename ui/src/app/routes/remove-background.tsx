import { removeBackground } from '@/features/tools/remove-background';
import { ToolStart } from './tool-start';

export default function RemoveBackgroundRoute() {
  return <ToolStart tool={removeBackground} />;
}
