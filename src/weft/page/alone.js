/* The page as a file of its own, which has its inspection inside. */

begin(JSON.parse(document.getElementById("data").textContent), document);
listen();
matchMedia("(prefers-color-scheme: dark)").addEventListener("change", repaint);

// On paper all pictures are light.
function dressForPaper(isBegun) {
  document.documentElement.toggleAttribute("data-printing", isBegun);
  repaint();
}
addEventListener("beforeprint", () => dressForPaper(true));
addEventListener("afterprint", () => dressForPaper(false));
matchMedia("print").addEventListener("change", ({ matches }) => dressForPaper(matches));
