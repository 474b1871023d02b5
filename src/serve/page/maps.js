const VIEWS = ["cross", "encoder", "decoder", "memory", "encoder-memory", "encoder-memory-backward"];
const VIEW_NAMES = { cross: "the target looks at the source", encoder: "the source looks at itself", decoder: "the target looks back",
  memory: "what the decoder keeps", "encoder-memory": "what the encoder keeps, forwards", "encoder-memory-backward": "what the encoder keeps, backwards" };
const TEXT_VIEW_NAMES = { decoder: "the text looks back", memory: "what the model keeps" };
const viewName = (view, isText) => (isText && TEXT_VIEW_NAMES[view]) || VIEW_NAMES[view];
/** A recurrence keeps shares of what it has read; it does not look. */
const isMemory = view => view.includes("memory");
/** Whether the rows of a view are source tokens. */
const isOfSource = view => view.startsWith("encoder");

const mapName = ({ part, layer, head }) => [part, layer, head].filter(name => name != null).join(".");
const viewsOf = answer => VIEWS.filter(view => answer.maps.some(map => map.part === view));

/** The places of a map's rows and columns: s0 is the first source token, t0 the first target token, t-1 the start symbol.
 *  A row stands where the token is that is being written: what is put in at that step is the token before. */
function placesOf(answer, map) {
  const places = (letter, first, n) => Array.from({ length: n }, (_, i) => `${letter}${first + i}`);
  const source = places("s", 0, answer.source.length), written = places("t", 0, answer.target.length);
  if (map.part === "cross") return { rows: written, columns: source };
  if (isOfSource(map.part)) return { rows: source, columns: source };
  if (answer.is_text) return { rows: [...source, ...written].slice(1), columns: [...source, ...written].slice(0, -1) };
  const input = places("t", -1, answer.target.length);
  // Where source and target are one sequence, a recurrence keeps tokens of both.
  const before = map.n_columns > input.length ? source : [];
  return { rows: [...before, ...written], columns: [...before, ...input] };
}

/** The maps that a choice of view, layer and head means. Heads that are switched off are in no mean. */
function mapsOf(answer, { view, layer, head, off }) {
  const all = answer.maps.filter(map => map.part === view && (layer == null || map.layer === layer) && (head == null || map.head === head));
  const on = all.filter(map => !off.includes(mapName(map)));
  return on.length ? on : all;
}

/** The chosen map, or the mean of the chosen ones, with its places; null if there is none. */
function meanOf(answer, look) {
  const maps = mapsOf(answer, look);
  if (!maps.length) return null;
  const { n_rows, n_columns } = maps[0];
  const weights = Float64Array.from({ length: n_rows * n_columns }, (_, i) => maps.reduce((sum, map) => sum + map.weights[i], 0) / maps.length);
  return { n_rows, n_columns, weights, ...placesOf(answer, maps[0]) };
}

/** Of what the shown weights are. */
function describeMaps(answer, look) {
  const maps = mapsOf(answer, look), [first] = maps;
  if (maps.length === 1) {
    const name = [first.layer && `layer ${first.layer}`, first.head && `head ${first.head}`].filter(part => part).join(", ");
    return name ? name + (look.off.includes(mapName(first)) ? " (switched off)" : "") : "the only attention of this model";
  }
  const what = first.head == null ? "layer" : "head";
  const layers = new Set(maps.map(map => map.layer));
  const where = what === "layer" ? "" : layers.size === 1 ? ` of layer ${first.layer}` : ` in ${layers.size} layers`;
  const n_off = answer.maps.filter(map => map.part === look.view && look.off.includes(mapName(map))).length;
  return `the mean of ${plural(maps.length, what)}${where}${n_off && look.layer == null ? ` (${n_off} off)` : ""}`;
}

/** What a place looks at, as [place, weight], and whether it is itself looked at instead. */
function weightsOf(map, place) {
  const { n_rows, n_columns, weights } = map;
  const row = map.rows.indexOf(place);
  if (row >= 0) return { isSeen: false, weights: map.columns.map((column, j) => [column, weights[row * n_columns + j]]) };
  const column = map.columns.indexOf(place);
  if (column < 0) return null;
  return { isSeen: true, weights: Array.from({ length: n_rows }, (_, i) => [map.rows[i], weights[i * n_columns + column]]) };
}
