/* The page as a file of its own, which has its inspection inside. */

takeLanguage();
begin(JSON.parse(document.getElementById("data").textContent), document);
listen();
matchMedia("(prefers-color-scheme: dark)").addEventListener("change", repaint);

// On paper all pictures are light, and there.
function dressForPaper(isBegun) {
  if (isBegun === isForPaper()) return;
  document.documentElement.toggleAttribute("data-printing", isBegun);
  drawAll();
  repaint();
  paintAll();
  paintUnseen();
}
addEventListener("beforeprint", () => dressForPaper(true));
addEventListener("afterprint", () => dressForPaper(false));
matchMedia("print").addEventListener("change", ({ matches }) => dressForPaper(matches));
