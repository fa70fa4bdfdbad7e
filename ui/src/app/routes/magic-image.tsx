import { magicFix } from '@/features/catalog/magic-fix';
import { MagicFixTool } from '@/features/magic-fix/magic-fix-tool';
import { ToolPage } from './tool-page';

export default function MagicImageRoute() {
  return <ToolPage tool={magicFix}>{(image) => <MagicFixTool image={image} />}</ToolPage>;
}
