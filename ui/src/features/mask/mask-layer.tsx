import 'konva/lib/shapes/Image';
import { useMemo } from 'react';
import { Group, Image, Shape as KonvaShape, Layer, Stage } from 'react-konva/lib/ReactKonvaCore';
import type { Box, View } from '@/components/pan-zoom/view';
import type { ImageSize } from '@/lib/image-size';
import { areaCanvas, MASK_COLOR } from './area-canvas';
import { drawStroke } from './draw-stroke';
import type { Area, Shape, Stroke } from './marks';
import { reachCanvas } from './reach-canvas';

type MaskLayerProps = {
  image: ImageSize;
  shapes: Shape[];
  activeStroke: Stroke | null;
  /** How far the result may change beyond the mask, in image pixels. */
  reach: number;
  box: Box;
  view: View;
};

/** The width of the line that shows the reach, in screen pixels, within a factor of √2. */
const REACH_LINE = 1.5;

/**
 * Draws the mask over the image. The only file that imports the drawing library, so that it loads separately.
 *
 * The stroke in progress has its own layer, so that a long mask is not redrawn with every point. An eraser has to be on
 * the layer it erases.
 */
export default function MaskLayer({ image, shapes, activeStroke, reach, box, view }: MaskLayerProps) {
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
  // Not rebuilt while only the active stroke grows.
  const finished = useMemo(
    () =>
      shapes.map((shape, index) => {
        // Stable keys: shapes are only added or removed at the end.
        const key = `${index}-${shape.kind}`;
        return shape.kind === 'area' ? (
          <AreaShape key={key} area={shape} image={image} />
        ) : (
          <StrokeLine key={key} stroke={shape} />
        );
      }),
    [shapes, image],
  );
  // In steps, because each width takes a large picture to draw.
  const reachLine = REACH_LINE / 2 ** Math.round(Math.log2(view.scale));
  const erasing = activeStroke?.kind === 'erase' ? activeStroke : null;
  return (
    <>
      <div data-mask className="pointer-events-none absolute inset-0 opacity-55">
        <Stage width={box.width} height={box.height} listening={false}>
          <Layer listening={false}>
            <Group {...inImage}>
              {finished}
              {erasing && <StrokeLine stroke={erasing} />}
            </Group>
          </Layer>
          <Layer listening={false}>
            <Group {...inImage}>{activeStroke && !erasing && <StrokeLine stroke={activeStroke} />}</Group>
          </Layer>
        </Stage>
      </div>
      {reach > 0 && shapes.length > 0 && !activeStroke && (
        <div
          data-reach={reach}
          // The shadow keeps the white line visible on a white image.
          className="pointer-events-none absolute inset-0 drop-shadow-[0_0_1px_rgb(0_0_0/0.9)]"
        >
          <Stage width={box.width} height={box.height} listening={false}>
            <Layer listening={false}>
              <Group {...inImage}>
                <ReachLine shapes={shapes} image={image} reach={reach} line={reachLine} />
              </Group>
            </Layer>
          </Stage>
        </div>
      )}
    </>
  );
}

type ReachLineProps = { shapes: Shape[]; image: ImageSize; reach: number; line: number };

function ReachLine({ shapes, image, reach, line }: ReachLineProps) {
  const picture = useMemo(() => reachCanvas(shapes, image, reach, line), [shapes, image, reach, line]);
  return <Image image={picture} width={image.x} height={image.y} />;
}

function StrokeLine({ stroke }: { stroke: Stroke }) {
  return (
    <KonvaShape
      sceneFunc={(context) => {
        context.strokeStyle = MASK_COLOR;
        drawStroke(context, stroke);
      }}
      globalCompositeOperation={stroke.kind === 'erase' ? 'destination-out' : 'source-over'}
    />
  );
}

function AreaShape({ area, image }: { area: Area; image: ImageSize }) {
  const picture = useMemo(() => areaCanvas(area, image), [area, image]);
  return (
    <Image
      image={picture}
      width={image.x}
      height={image.y}
      globalCompositeOperation={area.erases ? 'destination-out' : 'source-over'}
    />
  );
}
