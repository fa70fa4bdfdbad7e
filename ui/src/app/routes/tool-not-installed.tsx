import { ButtonLink } from '@/components/button-link';
import { CenteredPage } from '@/components/centered-page';
import type { ToolName } from '@/lib/api-types';
import { isInstalled, useConfig } from '@/lib/env';
import { paths } from '@/lib/paths';
import { toolName } from '@/lib/tool-names';
import { t } from '@/lib/translate';

const starts: Record<ToolName, string> = {
  'remove-background': paths.removeBackground,
  upscale: paths.upscale,
  'magic-fix': paths.magic,
};

/** Shown for a tool that this installation has no model for. */
export default function ToolNotInstalled({ name }: { name: ToolName }) {
  const config = useConfig();
  const other = config.tools.find(({ tool }) => tool !== name && isInstalled(config, tool))?.tool;
  return (
    <CenteredPage title={t('{tool} is not installed on this server yet', { tool: toolName(name) })}>
      <p>
        {t('Your image and your account are fine. The tool will appear here once the operator installs it.')}
      </p>
      {other && <ButtonLink to={starts[other]}>{t('{tool} instead', { tool: toolName(other) })}</ButtonLink>}
    </CenteredPage>
  );
}
