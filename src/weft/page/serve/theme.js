/* Before anything is painted: the light or dark look that was chosen, else that of the system. */
try {
  const theme = localStorage.getItem("weft-theme");
  if (theme) document.documentElement.dataset.theme = theme;
} catch {
  // a browser that keeps nothing has the look of its system
}
