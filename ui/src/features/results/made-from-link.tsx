import { Link } from 'react-router';
import { magicFix } from '@/features/catalog/magic-fix';
import { removeBackground } from '@/features/catalog/remove-background';
import { upscale } from '@/features/catalog/upscale';
import type { Image } from '@/lib/api-types';
import { rich } from '@/lib/rich';
import { toolName } from '@/lib/tool-names';

const tools = [removeBackground, upscale, magicFix];

/** Says which result an image was made from, and links to it while it exists. */
export function MadeFromLink({ image: { madeFrom } }: { image: Image }) {
  if (!madeFrom) return null;
  const tool = tools.find(({ name }) => name === madeFrom.tool);
  return (
    <p className="text-sm text-soft">
      {rich('Made from <link>a result of {tool}</link>', {
        tool: null,
        link: (text) => {
          const name = text.replace('{tool}', toolName(madeFrom.tool));
          return tool && madeFrom.imageId ? (
            <Link
              to={`${tool.pagePath}/${madeFrom.imageId}`}
              state={{ resultId: madeFrom.resultId }}
              className="font-medium text-ink underline underline-offset-4"
            >
              {name}
            </Link>
          ) : (
            name
          );
        },
      })}
    </p>
  );
}
