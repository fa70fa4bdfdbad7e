const KEY = 'retouch-rating';

/** Whether the user has chosen to show the rating in this browser. */
export function mayShowRating(): boolean {
  try {
    return localStorage.getItem(KEY) === 'shown';
  } catch {
    return false;
  }
}

export function rememberRating(isShown: boolean) {
  try {
    if (isShown) localStorage.setItem(KEY, 'shown');
    else localStorage.removeItem(KEY);
  } catch {
    // Storage is blocked: the page asks again on the next visit.
  }
}
