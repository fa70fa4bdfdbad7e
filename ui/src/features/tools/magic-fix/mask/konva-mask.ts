import { Group } from 'konva/lib/Group';
import { Layer } from 'konva/lib/Layer';
import { Stage } from 'konva/lib/Stage';
import { Image as Picture } from 'konva/lib/shapes/Image';
import { Line } from 'konva/lib/shapes/Line';
import type { ImageSize } from '@/lib/image-size';
import type { Area, Shape, Stroke } from './marks';
import type { Box, View } from './view';

/** Seen on skin, sky, leaves and paper; how much shines through is the stage's own opacity. */
const COLOUR = '#f5117b';
/** An imported area is shown with at most so many pixels a side. */
const MAX_SIDE = 2048;

/**
 * Draws shapes and nothing else. The stroke under way has a layer of its own, so that a long mask is not
 * drawn again with each of its points; an eraser works on the layer of what it erases.
 */
export class KonvaMask {
  private readonly stage: Stage;
  private readonly kept: Group;
  private readonly draft: Group;
  private erasing: Line | null = null;

  constructor(
    container: HTMLDivElement,
    private readonly image: ImageSize,
  ) {
    this.stage = new Stage({ container, width: 1, height: 1, listening: false });
    this.kept = this.layerInImage();
    this.draft = this.layerInImage();
  }

  private layerInImage(): Group {
    const group = new Group({ clipX: 0, clipY: 0, clipWidth: this.image.x, clipHeight: this.image.y });
    const layer = new Layer({ listening: false });
    layer.add(group);
    this.stage.add(layer);
    return group;
  }

  place({ width, height }: Box, { scale, x, y }: View) {
    this.stage.size({ width, height });
    for (const group of [this.kept, this.draft]) group.setAttrs({ x, y, scaleX: scale, scaleY: scale });
  }

  showShapes(shapes: Shape[]) {
    this.erasing = null;
    this.kept.destroyChildren();
    for (const shape of shapes) {
      this.kept.add(shape.kind === 'area' ? this.pictureOf(shape) : lineOf(shape));
    }
    this.kept.getLayer()?.batchDraw();
  }

  showDraft(stroke: Stroke | null) {
    this.erasing?.destroy();
    this.erasing = null;
    this.draft.destroyChildren();
    if (stroke?.kind === 'erase') {
      this.erasing = lineOf(stroke);
      this.kept.add(this.erasing);
    } else if (stroke) {
      this.draft.add(lineOf(stroke));
    }
    this.stage.batchDraw();
  }

  destroy() {
    this.stage.destroy();
  }

  private pictureOf({ runs }: Area): Picture {
    const scale = Math.min(1, MAX_SIDE / Math.max(this.image.x, this.image.y));
    const canvas = document.createElement('canvas');
    canvas.width = Math.ceil(this.image.x * scale);
    canvas.height = Math.ceil(this.image.y * scale);
    const context = canvas.getContext('2d');
    if (context) {
      context.fillStyle = COLOUR;
      for (let at = 0; at + 2 < runs.length; at += 3) {
        const [y = 0, from = 0, to = 0] = runs.slice(at, at + 3);
        const left = Math.floor(from * scale);
        const top = Math.floor(y * scale);
        context.fillRect(left, top, Math.ceil(to * scale) - left, Math.ceil((y + 1) * scale) - top);
      }
    }
    return new Picture({ image: canvas, width: this.image.x, height: this.image.y });
  }
}

function lineOf({ kind, size, points }: Stroke): Line {
  const [x = 0, y = 0] = points;
  return new Line({
    // A line of one point has no length, and nothing of it would be drawn.
    points: points.length > 2 ? points : [x, y, x + 0.01, y],
    stroke: COLOUR,
    strokeWidth: size,
    lineCap: 'round',
    lineJoin: 'round',
    perfectDrawEnabled: false,
    shadowForStrokeEnabled: false,
    globalCompositeOperation: kind === 'erase' ? 'destination-out' : 'source-over',
  });
}
