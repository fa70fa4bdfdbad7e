import ToolNotInstalled from './tool-not-installed';

export default function MagicOfRoute() {
  return <ToolNotInstalled name="magic-fix" />;
}
