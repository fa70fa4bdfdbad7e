import { create } from 'zustand';

/** The library for toasts and its container are fetched after the page, and shown with the first toast. */
export const useToasts = create<{ areNeeded: boolean }>(() => ({ areNeeded: false }));

export const loadToasts = () => import('react-toastify');

export function notifyError(message: string) {
  return notify('error', message);
}

export function notifySuccess(message: string) {
  return notify('success', message);
}

async function notify(kind: 'error' | 'success', message: string) {
  useToasts.setState({ areNeeded: true });
  try {
    const { toast } = await loadToasts();
    // The text is the id: the same news twice is one toast. Until the container is there, it waits.
    toast[kind](message, { toastId: message });
  } catch {
    // The network went before the library came; the page itself says what failed.
  }
}
