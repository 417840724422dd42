/* The division of a text into the rows that a model reads, as weft.predict.segments has it. */

const SPACES = "\\t-\\r\\x1c-\\x20\\x85\\xa0\\u1680\\u2000-\\u200a\\u2028\\u2029\\u202f\\u205f\\u3000";
const OUTER_SPACE = new RegExp(`^[${SPACES}]+|[${SPACES}]+$`, "g");
const LINE_BREAKS = new RegExp(`(?<![${SPACES}])[${SPACES}]*[\\r\\n][${SPACES}]*`, "g");
const INDENT = new RegExp(`^[${SPACES}]*`);
const TRAIL = new RegExp(`[${SPACES}]*$`);

const trimmed = (text) => text.replace(OUTER_SPACE, "");
const hasBreak = (text) => /[\r\n]/.test(text);

// A text as a single line: line breaks become spaces.
const oneLine = (text) => trimmed(hasBreak(text) ? text.replace(LINE_BREAKS, " ") : text);

// Sentences of running text, by the rules of weft.data.segment: `sentence_rules` says what each of them is.
class Sentences {
  constructor(rules) {
    const { wide, narrow, closing, either, unspaced } = rules;
    const space = `[${SPACES}]`;
    // what closes a sentence is taken whole: a look-ahead never gives back
    const closed = `(?=(?<closed>(?:[${closing}${either}]|[ \u00a0\u202f](?=[»›](?:${space}|$)))*))\\k<closed>`;
    this.end = new RegExp(
      `(?<wide>[${wide}][${narrow}]*[${closing}]*${space}*|(?<![!?])[!?]+(?=[${unspaced}]))` +
        `|(?<![${narrow}])(?<narrow>[${narrow}]+${closed}${space}+)|[\\r\\n]${space}*`,
      "gu",
    );
    this.rules = rules;
    for (const name of ["abbreviations", "numbered", "beginners"]) this[name] = new Set(rules[name]);
    this.lastWord = new RegExp(`([^${SPACES}([{"'“‘«„¿¡-]+)\\n?$`, "u");
    this.dash = new RegExp(`[—–―-]${space}*`, "uy");
  }

  // The sentences, white space with the one before it: joined they are the text.
  split(text) {
    const parts = [];
    let start = 0;
    for (const match of text.matchAll(this.end)) {
      const stop = match.index + match[0].length;
      if (stop >= text.length || !trimmed(text.slice(start, stop))) continue;
      if (!this.ends(text, start, match, stop)) continue;
      parts.push(text.slice(start, stop));
      start = stop;
    }
    return text ? [...parts, text.slice(start)] : [];
  }

  ends(text, start, match, stop) {
    if (hasBreak(match[0])) return true;
    const { wide, narrow } = match.groups;
    if (wide) {
      const following = String.fromCodePoint(text.codePointAt(stop));
      const isQuoted = "」』”’".includes(wide.at(-1));
      return !("、，；：,;:".includes(following) || (isQuoted && "とっ".includes(following)));
    }
    const marks = narrow.replace(TRAIL, "");
    const isSmall = /\p{Lowercase}/u.test(String.fromCodePoint(text.codePointAt(stop)));
    if (isSmall && /^[?؟？]*$/.test(marks)) return true;
    if (this.goesOn(text, stop)) return false;
    const isDot = marks[0] === "." && !marks.startsWith("..");
    if (!isDot || Array.from(marks).some((mark) => this.rules.questions.includes(mark))) return true;
    return this.dotEnds(text, start, match.index, stop);
  }

  // Whether a small letter follows, or a dash and one.
  goesOn(text, stop) {
    this.dash.lastIndex = stop;
    const [first = "", second = ""] = Array.from(text.slice(stop + (this.dash.exec(text)?.[0].length ?? 0), stop + 99));
    return /\p{Lowercase}/u.test(first) && !/\p{Uppercase}/u.test(second);
  }

  // Whether the word before a single dot is of the kind that needs none itself.
  dotEnds(text, start, dot, stop) {
    const before = Array.from(text.slice(Math.max(start, dot - 80), dot)).slice(-40).join("");
    const word = before.match(this.lastWord)?.[1] ?? "";
    const last = word.toLowerCase();
    const isBeforeNumber = /^\p{Nd}/u.test(text.slice(stop, stop + 2));
    if (isBeforeNumber && (this.numbered.has(last) || last.endsWith("str"))) return false;
    if (this.abbreviations.has(last)) return false;
    const letter = `${LETTER}[\u0900-\u0903\u093a-\u094f]{0,2}`;
    if (new RegExp(`^${letter}(?:\\.${letter})*$`, "u").test(word)) return isNoInitial(word, before);
    if (!/^\p{Nd}{1,2}$/u.test(last)) return true;
    if (this.rules.ordinals) return this.beginners.has(text.slice(stop, stop + 99).match(WORD)?.[0].toLowerCase());
    return !new RegExp(`^[${SPACES}]*\\p{Nd}{1,2}$`, "u").test(text.slice(start, dot));
  }
}

const LETTER = "[\\p{L}\\p{Nl}\\p{No}]";
const WORD = new RegExp(`^${LETTER}+`, "u");
const UNIT = new RegExp(`\\p{Nd}[${SPACES}]?${LETTER}$`, "u");

// Whether a word that looks like an initial may as well be the last: a unit, a time.
function isNoInitial(word, before) {
  if (word === "a.m" || word === "p.m" || /^[\u00df-\u00f6\u00f8-\u024f\u1e00-\u1eff]$/u.test(word)) return true;
  return /\p{Lowercase}/u.test(word) && word === word.toLowerCase() && UNIT.test(before);
}

// The rows that a text becomes: their ids with eos, the white space before each, and whether the end of one was cut.
// `lengths`: limit, usual (both count eos), bySentence.
function planRows(text, tokenizer, lengths, sentences) {
  const line = oneLine(text);
  const ids = tokenizer.encode(line);
  const isLong = ids.length + 1 > lengths.usual;
  const parts = isLong || lengths.bySentence ? sentences.split(text) : [];
  if (isLong || parts.length > 1) return planSentences(parts, tokenizer, lengths);
  if (!line || !ids.length) return { rows: [], before: [], texts: [], cut: false };
  return { rows: [[...ids, EOS_ID]], before: [text.match(INDENT)[0]], texts: [line], cut: false };
}

function planSentences(parts, tokenizer, { limit, usual, bySentence }) {
  const encoded = parts.map((part) => tokenizer.encode(part.replace(LINE_BREAKS, " ")));
  const plan = { rows: [], before: [], texts: [], cut: false };
  for (const pack of packs(encoded.map((ids) => ids.length), bySentence ? 0 : usual - 1)) {
    const together = oneLine(pack.map((i) => parts[i]).join(""));
    let ids = tokenizer.encode(together);
    if (ids.length > limit - 1) ids = pack.flatMap((i) => encoded[i]);
    if (!ids.length) continue;
    plan.cut ||= ids.length > limit - 1;
    plan.rows.push([...ids.slice(0, limit - 1), EOS_ID]);
    plan.before.push(pack[0] ? parts[pack[0] - 1].match(TRAIL)[0] : parts[0].match(INDENT)[0]);
    plan.texts.push(together);
  }
  return plan;
}

// Neighbours of these lengths in groups, as many as fit into `room`, one at least.
function packs(lengths, room) {
  const found = [];
  let filled = room;
  lengths.forEach((length, i) => {
    if (filled + length > room || !found.length) {
      found.push([]);
      filled = 0;
    }
    found.at(-1).push(i);
    filled += length;
  });
  return found;
}

// The translations of a plan’s rows as one text; `joiner` stands between the sentences of their language.
function joinRows(plan, texts, joiner) {
  let joined = "";
  texts.forEach((text, i) => {
    const white = plan.before[i];
    const isWide = !["", " "].includes(white) && !hasBreak(white);
    if (joined && text) joined += isWide ? white : joiner;
    joined += text;
  });
  const indent = plan.before[0] ?? "";
  return joined && !hasBreak(indent) ? indent + joined : joined;
}
