/** Marks of tokenizers: what they mean, and how a token looks without them. */
const isSpecial = token => /^<\/?[a-z]+>$/.test(token);

/** How a token is shown: its mark for a space before it, or for none, becomes the space itself. */
function bare(token) {
  const text = token.replace(/^[▁Ġ␣](?=.)/u, "").replace(/^##(?=.)/, "");
  return text === "▁" || text === "Ġ" ? "␣" : text;
}

/** For each token, whether a space stands before it. Tokens without any mark are words. */
function spaces(tokens) {
  const hasMarks = tokens.some(token => /^[▁Ġ␣]/u.test(token));
  return tokens.map(token => isSpecial(token) || (hasMarks ? /^[▁Ġ␣]./u.test(token) : !/^##./.test(token)));
}

/** Whether a text is written from right to left, by its first letter. */
const isLeftward = text => /[\u0590-\u08ff\ufb1d-\ufefc]/.test(text.match(/\p{L}/u)?.[0] ?? "");
