import { Link } from 'react-router';
import type { Image } from '@/lib/api-types';
import { formatBytes } from '@/lib/format';
import { paths } from '@/lib/paths';
import { rich } from '@/lib/rich';
import { t } from '@/lib/translate';
import { imageName, imageOrigin } from './image-name';

/** The uploaded image. Its size is known in advance, so nothing shifts when it loads. */
export function OriginalImage({ image }: { image: Image }) {
  return (
    <figure>
      <div className="grid min-h-40 place-items-center overflow-hidden rounded-lg border border-line bg-sunken">
        <img
          src={image.previewUrl ?? image.url}
          alt={imageName(image)}
          width={image.x}
          height={image.y}
          // The size attributes set the aspect ratio once the width is fixed.
          className="checkerboard h-auto w-full"
          style={{ maxWidth: `min(${image.x}px, calc(60dvh * ${image.x / image.y}))` }}
        />
      </div>
      <figcaption className="mt-2 grid gap-1 text-sm text-soft">
        {image.name && <span className="font-medium wrap-anywhere text-ink">{image.name}</span>}
        <span>{`${t('{x} × {y} px', { x: image.x, y: image.y })} · ${formatBytes(image.sizeBytes)}`}</span>
        <Origin image={image} />
      </figcaption>
    </figure>
  );
}

/** The source of an image that was made from a result, with a link as long as the source exists. */
function Origin({ image }: { image: Image }) {
  const text = imageOrigin(image);
  const sourceId = image.madeFrom?.imageId;
  if (!text) return null;
  if (!sourceId) return <span>{text}</span>;
  return (
    <span>
      {rich('{origin} of <link>this image</link>', {
        origin: text,
        link: (name) => (
          <Link to={paths.image(sourceId)} className="underline underline-offset-4 hover:text-ink">
            {name}
          </Link>
        ),
      })}
    </span>
  );
}
