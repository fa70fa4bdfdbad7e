export type DownloadFormat = 'png' | 'jpg' | 'webp';

/**
 * Copies a picture as a PNG, the one format that every clipboard takes. Call it in a click. Browsers encode it again, for
 * safety, so a copy has no marks.
 */
export async function copyPicture(png: Promise<Blob>): Promise<void> {
  // Safari wants the promise itself: after a pause, the click no longer counts.
  await navigator.clipboard.write([new ClipboardItem({ 'image/png': png })]);
}

export function saveFile(blob: Blob, name: string) {
  const href = URL.createObjectURL(blob);
  const link = document.createElement('a');
  link.href = href;
  link.download = name;
  link.click();
  // The download starts after the click returns; Safari needs the URL a little longer.
  setTimeout(() => URL.revokeObjectURL(href), 60_000);
}
