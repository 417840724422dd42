/* Unpacks the data, the style and the script of the page and lets them work: its policy knows the hashes of these two. */

(async () => {
  const bytesOf = (text) => {
    if (Uint8Array.fromBase64) return Uint8Array.fromBase64(text);
    const letters = atob(text);
    const bytes = new Uint8Array(letters.length);
    for (let i = 0; i < letters.length; i++) bytes[i] = letters.charCodeAt(i); // ten times as fast as a function for each
    return bytes;
  };
  const unpacked = (element) => {
    const bytes = bytesOf(element.textContent);
    return new Response(new Blob([bytes]).stream().pipeThrough(new DecompressionStream("deflate-raw"))).text();
  };
  try {
    const [program, data] = ["packed", "data"].map((id) => document.getElementById(id));
    const [content, json] = await Promise.all([unpacked(program), unpacked(data)]);
    data.textContent = json;
    const [style, script] = content.split("\0");
    for (const [tag, text] of Object.entries({ style, script })) {
      const element = document.createElement(tag);
      element.textContent = text;
      document.head.append(element);
    }
    program.remove();
  } catch (error) {
    document.getElementById("unseen").hidden = false;
    throw error;
  }
})();
