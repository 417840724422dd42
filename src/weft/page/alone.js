/* The page as a file of its own, which has its inspection inside. */

begin(JSON.parse(document.getElementById("data").textContent), document);
listen();
matchMedia("(prefers-color-scheme: dark)").addEventListener("change", repaint);
