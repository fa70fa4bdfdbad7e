export type ImageSize = { x: number; y: number };

/** Reads width and height in pixels, with the EXIF orientation applied. Rejects if the file is not an image. */
export function readImageSize(url: string): Promise<ImageSize> {
  return new Promise((resolve, reject) => {
    const image = new Image();
    image.onload = () => resolve({ x: image.naturalWidth, y: image.naturalHeight });
    image.onerror = () => reject(new Error('Not an image'));
    image.src = url;
  });
}
