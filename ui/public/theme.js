try {
  var theme = localStorage.getItem('retouch-theme');
  if (theme === 'light' || theme === 'dark') document.documentElement.dataset.theme = theme;
} catch (_) {
  // Storage may be blocked; the system's theme is used then.
}
