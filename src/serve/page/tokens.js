const percent = p => p >= 0.995 ? "100\u202f%" : p >= 0.0095 ? `${(100 * p).toFixed(0)}\u202f%` : p >= 0.001 ? `${(100 * p).toFixed(1)}\u202f%` : "< 0.1\u202f%";
const plural = (n, word) => `${n} ${word}${n === 1 ? "" : "s"}`;

/** Which elements of two lists are in no longest common subsequence: [of the first, of the second]. */
function differences(a, b) {
  const length = Array.from({ length: a.length + 1 }, () => new Uint16Array(b.length + 1));
  for (let i = a.length - 1; i >= 0; i--) for (let j = b.length - 1; j >= 0; j--) {
    length[i][j] = a[i] === b[j] ? length[i + 1][j + 1] + 1 : Math.max(length[i + 1][j], length[i][j + 1]);
  }
  const marks = [a.map(() => true), b.map(() => true)];
  for (let i = 0, j = 0; i < a.length && j < b.length;) {
    if (a[i] === b[j]) marks[0][i++] = marks[1][j++] = false;
    else if (length[i + 1][j] >= length[i][j + 1]) i++;
    else j++;
  }
  return marks;
}

/** The sum of the logarithms of the tokens' probabilities, in words. */
function logProbability(tokens) {
  // Numbers in 32 bits end there.
  const sum = tokens.reduce((sum, { probability }) => sum + Math.log(Math.max(probability, 1e-38)), 0);
  return sum.toFixed(2).replace("-", "−");
}

/** Whether a sentence is an edited form of another: half of its words are those of the other. */
function isEdited(from, to) {
  const words = text => text.toLowerCase().split(/\s+/).filter(word => word);
  const old = new Set(words(from)), now = words(to);
  return now.length > 0 && 2 * now.filter(word => old.has(word)).length >= now.length;
}
