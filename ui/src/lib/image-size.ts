export type ImageSize = { x: number; y: number };

/** Width and height as the browser shows the file (its orientation applied). Rejects what is no image. */
export function readImageSize(address: string): Promise<ImageSize> {
  return new Promise((resolve, reject) => {
    const image = new Image();
    image.onload = () => resolve({ x: image.naturalWidth, y: image.naturalHeight });
    image.onerror = () => reject(new Error('Not an image this browser can read'));
    image.src = address;
  });
}
