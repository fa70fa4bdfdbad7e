const KEY = 'retouch-rating';

/** Whether this browser has been allowed to fetch the rating. */
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
    // A browser that keeps nothing asks again with the next visit.
  }
}
