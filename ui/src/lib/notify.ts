import type { ReactNode } from 'react';
import { create } from 'zustand';

/** The library for toasts and its container are fetched after the page, and shown with the first toast. */
export const useToasts = create<{ areNeeded: boolean }>(() => ({ areNeeded: false }));

export const loadToasts = () => import('react-toastify');

type Kind = 'error' | 'success' | 'info';

export function notifyError(message: string) {
  return notify('error', message, message);
}

export function notifySuccess(message: string) {
  return notify('success', message, message);
}

export function notifyInfo(message: string) {
  return notify('info', message, message);
}

/** The same news, by its id, is one toast however often it is told; of a plain sentence it is the text. */
export async function notify(kind: Kind, content: ReactNode, toastId: string) {
  useToasts.setState({ areNeeded: true });
  try {
    const { toast } = await loadToasts();
    // Until the container is there, it waits.
    toast[kind](content, { toastId });
  } catch {
    // The network went before the library came; the page itself says what failed.
  }
}
