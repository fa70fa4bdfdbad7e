import { Link } from 'react-router';
import type { Image } from '@/lib/api-types';
import { paths } from '@/lib/paths';
import { rich } from '@/lib/rich';
import { imageOrigin } from './image-name';

/** The source of an image that was made from a result, with a link as long as the source exists. */
export function ImageSource({ image }: { image: Image }) {
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
