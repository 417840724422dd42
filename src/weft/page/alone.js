/* The page as a file of its own, which has its inspection inside. */

begin(JSON.parse(document.getElementById("data").textContent), document);
listen();
matchMedia("(prefers-color-scheme: dark)").addEventListener("change", repaint);

// On paper all pictures are light.
function print(isBegun) {
  document.documentElement.toggleAttribute("data-printing", isBegun);
  repaint();
}
addEventListener("beforeprint", () => print(true));
addEventListener("afterprint", () => print(false));
matchMedia("print").addEventListener("change", ({ matches }) => print(matches));
