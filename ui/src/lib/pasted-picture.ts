import { onSignOut } from './sign-out-cleanup';

/** The event of this window that offers the pasted picture to the page that is open. */
export const PICTURE_PASTED = 'retouch-picture-pasted';

/** A pasted picture on its way to a page that takes pictures. */
let pasted: File | null = null;

export function keepPasted(file: File) {
  pasted = file;
}

/** Returns the pasted picture, once; null if there is none. */
export function takePasted(): File | null {
  const file = pasted;
  pasted = null;
  return file;
}

onSignOut(() => void takePasted());
