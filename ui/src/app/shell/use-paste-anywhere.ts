import { useEffect, useEffectEvent } from 'react';
import { useLocation, useNavigate } from 'react-router';
import { keepPasted, PICTURE_PASTED } from '@/lib/pasted-picture';
import { paths } from '@/lib/paths';
import { useSession } from '@/lib/session';
import { isTextField } from '@/lib/text-field';

const tools = [paths.removeBackground, paths.upscale, paths.magic];

/**
 * Takes an image that is pasted on a page without an upload panel to one that has a panel: the start page of the
 * current tool, or a page that everybody may use.
 */
export function usePasteAnywhere() {
  const navigate = useNavigate();
  const { pathname } = useLocation();
  const { isSignedIn } = useSession();

  const paste = useEffectEvent((event: ClipboardEvent) => {
    const image = Array.from(event.clipboardData?.files ?? []).find(({ type }) => type.startsWith('image/'));
    // An upload panel has taken it already.
    if (event.defaultPrevented || isTextField(event.target) || !image) return;
    event.preventDefault();
    keepPasted(image);
    const isHere = (path: string) => pathname === path || pathname.startsWith(`${path}/`);
    // Only users have Magic Fix and a page of images.
    const tool = tools.find((path) => isHere(path) && (isSignedIn || path !== paths.magic));
    const target = tool ?? (isSignedIn ? paths.images : paths.removeBackground);
    // A panel takes it, or says why not.
    if (target === pathname) window.dispatchEvent(new Event(PICTURE_PASTED));
    else void navigate(target);
  });

  useEffect(() => {
    const handlePaste = (event: ClipboardEvent) => paste(event);
    // On the window, after the upload panels, which listen on the document.
    window.addEventListener('paste', handlePaste);
    return () => window.removeEventListener('paste', handlePaste);
  }, []);
}
