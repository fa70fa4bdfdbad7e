import 'konva/lib/shapes/Image';
import 'konva/lib/shapes/Line';
import { useMemo } from 'react';
import { Group, Image, Layer, Line, Stage } from 'react-konva/lib/ReactKonvaCore';
import type { ImageSize } from '@/lib/image-size';
import { areaCanvas, COLOUR } from './area-canvas';
import type { Area, Shape, Stroke } from './marks';
import type { Box, View } from './view';

type MaskLayerProps = { image: ImageSize; shapes: Shape[]; draft: Stroke | null; box: Box; view: View };

/**
 * The mask over the image. The only file that pulls in the drawing library, so it is fetched by itself.
 *
 * The stroke under way has a layer of its own, so that a long mask is not drawn again with each of its points; an
 * eraser works on the layer of what it erases.
 */
export default function MaskLayer({ image, shapes, draft, box, view }: MaskLayerProps) {
  const inImage = {
    x: view.x,
    y: view.y,
    scaleX: view.scale,
    scaleY: view.scale,
    clipX: 0,
    clipY: 0,
    clipWidth: image.x,
    clipHeight: image.y,
  };
  // Kept as it is while only the draft grows.
  const kept = useMemo(
    () =>
      shapes.map((shape, index) => {
        // Shapes are only ever added and taken away at the end.
        const key = `${index}-${shape.kind}`;
        return shape.kind === 'area' ? (
          <AreaShape key={key} area={shape} image={image} />
        ) : (
          <StrokeLine key={key} stroke={shape} />
        );
      }),
    [shapes, image],
  );
  const erasing = draft?.kind === 'erase' ? draft : null;
  return (
    <div data-mask className="pointer-events-none absolute inset-0 opacity-55">
      <Stage width={box.width} height={box.height} listening={false}>
        <Layer listening={false}>
          <Group {...inImage}>
            {kept}
            {erasing && <StrokeLine stroke={erasing} />}
          </Group>
        </Layer>
        <Layer listening={false}>
          <Group {...inImage}>{draft && !erasing && <StrokeLine stroke={draft} />}</Group>
        </Layer>
      </Stage>
    </div>
  );
}

function StrokeLine({ stroke: { kind, size, points } }: { stroke: Stroke }) {
  const [x = 0, y = 0] = points;
  return (
    <Line
      // A line of one point has no length, and nothing of it would be drawn.
      points={points.length > 2 ? points : [x, y, x + 0.01, y]}
      stroke={COLOUR}
      strokeWidth={size}
      lineCap="round"
      lineJoin="round"
      perfectDrawEnabled={false}
      shadowForStrokeEnabled={false}
      globalCompositeOperation={kind === 'erase' ? 'destination-out' : 'source-over'}
    />
  );
}

function AreaShape({ area, image }: { area: Area; image: ImageSize }) {
  const picture = useMemo(() => areaCanvas(area, image), [area, image]);
  return <Image image={picture} width={image.x} height={image.y} />;
}
