import { magicFix } from '@/features/tools/magic-fix/magic-fix';
import { MagicFixTool } from '@/features/tools/magic-fix/magic-fix-tool';
import { ToolPage } from './tool-page';

export default function MagicOfRoute() {
  return <ToolPage tool={magicFix}>{(image) => <MagicFixTool key={image.id} image={image} />}</ToolPage>;
}
