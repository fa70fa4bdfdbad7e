import { Link } from 'react-router';
import { magicFix } from '@/features/catalog/magic-fix';
import { removeBackground } from '@/features/catalog/remove-background';
import { upscale } from '@/features/catalog/upscale';
import type { Image } from '@/lib/api-types';
import { toolNames } from '@/lib/tool-names';

const tools = [removeBackground, upscale, magicFix];

/** Says which result an image was made from, and links to it while it exists. */
export function MadeFromLink({ image: { madeFrom } }: { image: Image }) {
  if (!madeFrom) return null;
  const tool = tools.find(({ name }) => name === madeFrom.tool);
  const text = `a result of ${toolNames[madeFrom.tool]}`;
  return (
    <p className="text-sm text-soft">
      Made from{' '}
      {tool && madeFrom.imageId ? (
        <Link
          to={`${tool.pagePath}/${madeFrom.imageId}`}
          state={{ resultId: madeFrom.resultId }}
          className="font-medium text-ink underline underline-offset-4"
        >
          {text}
        </Link>
      ) : (
        text
      )}
    </p>
  );
}
