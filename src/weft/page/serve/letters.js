/* Places in a text as the server counts them: in characters of Unicode, of which some are two of JavaScript's. */

export function slicer(text) {
  if (!/[\ud800-\udfff]/.test(text)) return (start, end) => text.slice(start, end);
  const letters = [...text];
  return (start, end) => letters.slice(start, end).join("");
}

export const lengthOf = (text) => (/[\ud800-\udfff]/.test(text) ? [...text].length : text.length);

// A text in pieces: those at the places, which are in order and apart, and what is between them.
export function pieces(text, places) {
  const slice = slicer(text);
  const found = [];
  let at = 0;
  for (const place of places) {
    if (place.start > at) found.push({ text: slice(at, place.start), place: null });
    found.push({ text: slice(place.start, place.end), place });
    at = place.end;
  }
  const rest = slice(at, undefined);
  if (rest) found.push({ text: rest, place: null });
  return found;
}

export const overlaps = ([start, end], [from, to]) => start < to && from < end;
