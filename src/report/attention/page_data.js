/** What is looked at. Layer and head are numbers, "average", or null where the model has none. */
const shown = { sentence: 0, part: "cross", layer: "average", head: "average", view: "matrix", least: 0, row: null, column: null };
const PARTS = ["cross", "encoder", "decoder", "memory", "encoder-memory", "encoder-memory-backward"];
const PART_TITLES = { cross: "target → source", encoder: "source → source", decoder: "target → target", memory: "what is kept",
  "encoder-memory": "what is kept, forwards", "encoder-memory-backward": "what is kept, backwards" };
/** Maps of what a recurrence keeps have shares of what each token wrote, not weights. */
const isMemory = (part = shown.part) => part.includes("memory");
/** A text has no source: its rows are the tokens that were read, each of which predicts the next. */
const isText = () => sentence().source.length === 0;
const titleOf = part => isText() && part === "decoder" ? "text → text" : PART_TITLES[part];

const sentence = () => data.sentences[shown.sentence];
const partsThere = () => PARTS.filter(part => sentence().maps.some(map => map.part === part));
const mapsOf = (part = shown.part) => sentence().maps.filter(map => map.part === part);
const numbersOf = key => [...new Set(mapsOf().map(map => map[key]).filter(n => n != null))].sort((a, b) => a - b);
const rowLabels = (part = shown.part) => part === "cross" ? sentence().target : columnLabels(part);
/** Where source and target are one sequence, a recurrence reads both. */
const columnLabels = (part = shown.part) => {
  const { source, input } = sentence();
  if (part === "memory") return mapsOf(part)[0].columns > input.length ? [...source, ...input] : input;
  return part === "decoder" ? input : source;
};

/** Unpacked weights by map; a few long sentences at most are kept. */
const unpacked = new Map();

/** The weights of one map, as numbers from 0 to 1. */
async function weightsOf(map) {
  if (unpacked.has(map)) return unpacked.get(map);
  const packed = Uint8Array.from(atob(map.weights), c => c.charCodeAt(0));
  const stream = new Blob([packed]).stream().pipeThrough(new DecompressionStream("deflate-raw"));
  const bytes = new Uint8Array(await new Response(stream).arrayBuffer());
  const weights = new Float32Array(map.rows * map.columns);
  for (let i = 0; i < weights.length; i++) {
    weights[i] = data.packing === "exact" ? (bytes[2 * i] + 256 * bytes[2 * i + 1]) / 65535 : (bytes[i] / 255) ** 2;
  }
  if (unpacked.size > 400) unpacked.clear();
  unpacked.set(map, weights);
  return weights;
}

/** The maps that the choice of layer and head means. */
function chosen() {
  const fits = (choice, value) => choice === "average" || choice == null || choice === value;
  return mapsOf().filter(map => fits(shown.layer, map.layer) && fits(shown.head, map.head));
}

/** The chosen map, or the mean of the chosen maps. */
async function matrix() {
  let maps = chosen();
  if (maps.length > 1 && maps.length === mapsOf().length) maps = sentence().means.filter(map => map.part === shown.part);
  const all = await Promise.all(maps.map(weightsOf));
  const { rows, columns } = maps[0];
  if (all.length === 1) return { rows, columns, weights: all[0] };
  const weights = new Float32Array(rows * columns);
  for (const one of all) for (let i = 0; i < weights.length; i++) weights[i] += one[i] / all.length;
  return { rows, columns, weights };
}

/** What rows and columns are, for the picture's axes. */
const AXES = { cross: ["written", "looked at"], encoder: ["reading", "looked at"], decoder: ["read", "looked at"] };
const axes = () => isMemory() ? ["after", "what is left of"] : AXES[shown.part] ?? ["row", "column"];

/** A head in words. */
const headName = map => [map.layer && `layer ${map.layer}`, map.head && `head ${map.head}`].filter(Boolean).join(", ") || titleOf(map.part);
