const byId = id => document.getElementById(id);
const shown = { map: 0, colour: "length", point: null, label: null, find: "", swapped: true };
const labels = [...new Set(data.sentences.map(s => s.label).filter(label => label != null))];
const lengths = data.sentences.map(s => s.length);
const longest = lengths.reduce((a, b) => Math.max(a, b), 1), shortest = lengths.reduce((a, b) => Math.min(a, b), Infinity);
if (labels.length) shown.colour = "label";

const points = () => data.maps[shown.map][1].points;
const sentenceOf = point => data.sentences[point.sentence];

/** Sentences of the same words with another label: only the order, so who does it to whom, tells them apart. */
const twins = (() => {
  const words = s => s.text.toLowerCase().match(/[\p{L}\p{N}]+/gu)?.sort().join(" ") ?? "";
  const keys = data.sentences.map(words), found = data.sentences.map(() => []);
  const groups = new Map();
  keys.forEach((key, i) => groups.set(key, [...(groups.get(key) ?? []), i]));
  for (const group of groups.values()) for (const i of group) for (const j of group) {
    const [a, b] = [data.sentences[i].label, data.sentences[j].label];
    if (a != null && b != null && a !== b) found[i].push(j);
  }
  return found;
})();
/** Each pair once. */
const swapped = twins.flatMap((others, i) => others.filter(j => j > i).map(j => [i, j]));

/** Whether a point is among those that are looked for. */
function lit(point) {
  const sentence = sentenceOf(point);
  if (shown.label != null && sentence.label !== shown.label) return false;
  return !shown.find || sentence.text.toLowerCase().includes(shown.find);
}

/** The nearest others of a point, as [place, cosine]. */
const nearestOf = i => data.nearest[shown.map][i] ?? [];

/** What came out, in one line: how often the nearest sentence shares the label, beside chance. */
function headline() {
  const g = data.grouping;
  if (shown.map === 1) return [`${plural(points().length, "token")}, each with the colour of its sentence`];
  if (!g) return [`${plural(data.sentences.length, "sentence")} in the plane`];
  return [`The nearest sentence shares the label: ${percent(g.nearest_is_same)}`, el("span", { class: "muted" }, `  by chance ${percent(g.by_chance)}`)];
}

/** What the swapped pairs show: for how many the nearest of all sentences has the swapped meaning. */
function lesson() {
  if (swapped.length === 0) return "";
  const those = data.sentences.map((_, i) => i).filter(i => twins[i].length > 0);
  const confused = those.filter(i => twins[i].some(twin => data.sentences[twin].label === data.sentences[data.nearest[0][i]?.[0]?.[0]]?.label));
  const [first, second] = swapped[0].map(i => data.sentences[i].text);
  return `Swapped pairs have the same words and another meaning, such as “${first}” and “${second}”; dashed lines join them. ${confused.length === 0
    ? `The nearest sentence has the swapped meaning for none of the ${those.length}: the order of the words counts.` : `The nearest sentence has the swapped meaning for ${confused.length} of ${those.length}: there the words count more than their order.`}`;
}

/** Every point as a row of a table. */
function pointRows() {
  const head = ["line", "label", ...(shown.map ? ["token"] : []), "sentence", "tokens", "across", "up", "nearest line", "cosine"];
  return [head, ...points().map((point, i) => {
    const s = sentenceOf(point), [near, cosine] = nearestOf(i)[0] ?? [];
    return [s.number, s.label ?? "", ...(shown.map ? [point.token] : []), s.text, s.length, point.at[0], point.at[1], near == null ? "" : sentenceOf(points()[near]).number, cosine ?? ""];
  })];
}
