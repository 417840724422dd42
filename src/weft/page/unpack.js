/* Unpacks the style and the script of the page and lets them work: the policy of the page knows their hashes. */

(async () => {
  const packed = document.getElementById("packed");
  try {
    const bytes = Uint8Array.from(atob(packed.textContent), (letter) => letter.charCodeAt(0));
    const unpacked = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("deflate-raw"));
    const [style, script] = (await new Response(unpacked).text()).split("\0");
    for (const [tag, content] of Object.entries({ style, script })) {
      const element = document.createElement(tag);
      element.textContent = content;
      document.head.append(element);
    }
    packed.remove();
  } catch (error) {
    document.getElementById("unseen").hidden = false;
    throw error;
  }
})();
