import { screen } from '@testing-library/react';
import { notifyInfo } from '@/lib/notify';

/** Waits until all toasts so far are shown. One that is missing then was never asked for. */
export async function toastsAreShown() {
  const last = 'The last toast';
  void notifyInfo(last);
  await screen.findByText(last);
}
