import type { ReactNode } from 'react';
import { create } from 'zustand';

/** Whether the toast container has to be rendered. Its library loads after the page. */
export const useToasts = create<{ isNeeded: boolean }>(() => ({ isNeeded: false }));

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

/** Shows a toast. Toasts with the same id are shown once; for plain messages the id is the text. */
export async function notify(kind: Kind, content: ReactNode, toastId: string) {
  useToasts.setState({ isNeeded: true });
  try {
    const { toast } = await loadToasts();
    // Queued until the container is rendered.
    toast[kind](content, { toastId });
  } catch {
    // The library could not be loaded. The page itself also shows what failed.
  }
}

/** Closes a toast that no longer holds. */
export async function closeToast(toastId: string) {
  if (!useToasts.getState().isNeeded) return;
  try {
    const { toast } = await loadToasts();
    toast.dismiss(toastId);
  } catch {
    // It was not shown either.
  }
}
