export type DownloadFormat = 'png' | 'jpg' | 'webp';

export function saveFile(blob: Blob, name: string) {
  const href = URL.createObjectURL(blob);
  const link = document.createElement('a');
  link.href = href;
  link.download = name;
  link.click();
  // The download starts after the click returns; Safari needs the URL a little longer.
  setTimeout(() => URL.revokeObjectURL(href), 60_000);
}
