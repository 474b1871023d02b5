const byId = id => document.getElementById(id);

/** Changes what is shown, keeps it possible, and draws it. */
async function choose(change) {
  if ("sentence" in change || "part" in change) Object.assign(shown, { row: null, column: null });
  Object.assign(shown, change);
  if (!partsThere().includes(shown.part)) shown.part = partsThere()[0];
  for (const key of ["layer", "head"]) {
    const there = numbersOf(key);
    if (there.length === 0) shown[key] = null;
    else if (!there.includes(shown[key])) shown[key] = "average";
  }
  controls();
  const state = () => JSON.stringify([shown.sentence, shown.part, shown.layer, shown.head]);
  const wanted = state(), map = await matrix();
  if (wanted !== state()) return;
  current = map;
  picture = paint(current);
  byId("strongest").textContent = `(${Number(largest(current).toPrecision(2))})`;
  frame.hidden = shown.view === "grid";
  byId("thumbnails").hidden = shown.view !== "grid";
  draw();
  readout();
  weightsTable();
  await drawHeads(byId("strip"), false);
  if (shown.view === "grid") await drawHeads(byId("thumbnails"), true);
  reachable();
  const listed = value => value === "average" ? null : value;
  address.write({ sentence: sentence().number, part: shown.part, layer: listed(shown.layer), head: listed(shown.head), view: shown.view === "matrix" ? null : shown.view,
    row: shown.row == null ? null : shown.row + 1, marks: marks.areShown ? 1 : null });
}

function draw() {
  if (!current) return;
  if (shown.view === "matrix") drawMatrix();
  if (shown.view === "lines") drawLines();
}

/** Selects, buttons and the words above the picture. */
function controls() {
  const { source_text, target_text, number } = sentence(), hadFocus = document.activeElement?.dataset?.part;
  byId("sentence").value = shown.sentence;
  byId("pair").replaceChildren(...(isText() ? [] : [el("bdi", { class: "from scroll" }, source_text), el("span", { class: "arrow" }, "→")]), el("bdi", {}, el("b", {}, target_text)));
  byId("parts").replaceChildren(...partsThere().map(part =>
    el("button", { type: "button", "data-part": part, "aria-pressed": part === shown.part, onclick: () => choose({ part }) }, titleOf(part))));
  if (hadFocus) byId("parts").querySelector(`[data-part="${hadFocus}"]`)?.focus();
  for (const key of ["layer", "head"]) {
    const there = numbersOf(key), select = byId(key);
    const options = there.length > 1 ? ["average", ...there] : there.length ? there : ["–"];
    select.replaceChildren(...options.map(value => el("option", { value }, String(value))));
    if (there.length === 1) shown[key] = there[0];
    select.value = shown[key] ?? "–";
    select.disabled = there.length < 2;
    select.parentNode.hidden = there.length < 2;
  }
  for (const button of document.querySelectorAll("[data-view]")) button.setAttribute("aria-pressed", button.dataset.view === shown.view);
  byId("least-value").value = shown.least.toFixed(2);
  const maps = chosen();
  const isOnly = maps.length === 1 && headName(maps[0]) === titleOf(shown.part);
  const words = maps.length === 1 ? `${isOnly ? "" : `${headName(maps[0])}. `}${describe(maps[0])}` : `the mean of ${plural(maps.length, isMemory() ? "map" : "head")}`;
  byId("numbers").replaceChildren(`sentence ${number}, ${titleOf(shown.part)}: ${words}`);
  frame.setAttribute("aria-label", `${isMemory() ? "what is kept" : "attention weights"}, ${words}; the same as a table below`);
  for (const row of document.querySelectorAll("#heads tbody tr")) {
    row.setAttribute("aria-current", maps.length === 1 && row.dataset.key === [maps[0].part, maps[0].layer, maps[0].head].join());
  }
}

function describe({ measures: m, looks_at }) {
  if (isMemory()) return `${looks_at}: what the state holds of all tokens, counted in whole ones`;
  return `Looks at: ${looks_at}; entropy ${number(m.entropy)} nats (${number(Math.exp(m.entropy), 1)} tokens), distance ${number(m.distance, 1)}, diagonality ${number(m.diagonality)}`;
}

/** The row and column that are pointed at, in words. */
function readout() {
  const box = byId("readout"), rows = rowLabels(), columns = columnLabels();
  const { row, column } = shown, found = [];
  const bars = (title, entries) => [el("div", {}, title), el("div", { class: "row" }, ...entries
    .filter(([, weight]) => weight >= 0.005).sort((a, b) => b[1] - a[1]).slice(0, 6)
    .flatMap(([text, weight]) => [token(text), el("span", {}, el("span", { class: "bar", style: `width:${100 * weight}%` })), weight.toFixed(3)]))];
  const share = row != null && column != null ? current.weights[row * current.columns + column].toFixed(4) : null;
  if (share != null && isMemory()) found.push(el("div", {}, "after ", token(rows[row]), ` a share of ${share} is left of `, token(columns[column])));
  else if (share != null) found.push(el("div", {}, token(rows[row]), " looks at ", token(columns[column]), ` with weight ${share}`));
  if (row != null) {
    const chance = ` (probability ${sentence().probabilities[row]?.toFixed(3)})`;
    const predicts = isText() ? [" predicts ", token(sentence().target[row]), `${chance} and`] : shown.part === "cross" ? [chance] : [];
    const title = isMemory() ? el("span", {}, "after ", token(rows[row]), " is left of:") : el("span", {}, token(rows[row]), ...predicts, " looks at:");
    found.push(...bars(title, columns.map((label, j) => [label, current.weights[row * current.columns + j]])));
  }
  if (column != null) {
    const covered = shown.part === "cross" && sentence().coverage ? ` (coverage ${sentence().coverage[column].toFixed(2)})` : "";
    const title = isMemory() ? el("span", {}, "of ", token(columns[column]), " is left after:") : el("span", {}, token(columns[column]), `${covered} is looked at by:`);
    found.push(...bars(title, rows.map((label, i) => [label, current.weights[i * current.columns + column]])));
  }
  box.replaceChildren(...(found.length ? found : ["Point at a token or a cell: its row and column are shown here."]));
}

/** What lies under the pointer. */
function pointed(event) {
  const box = canvas.getBoundingClientRect(), x = event.clientX - box.left, y = event.clientY - box.top;
  const within = (i, n) => i >= 0 && i < n ? i : null;
  const [rows, columns] = [rowLabels().length, columnLabels().length];
  if (shown.view === "matrix") {
    const { left, top, cell, wide } = place;
    return [y < top ? null : within(Math.floor((y - top + frame.scrollTop) / cell), rows),
      x < left ? null : within(Math.floor((x - left + frame.scrollLeft) / wide), columns)];
  }
  const { side, gap, pitch, head } = place, i = Math.floor((y - head + frame.scrollTop) / pitch);
  return x < side + gap / 2 ? [within(i, rows), null] : [null, within(i, columns)];
}

function point(row, column) {
  if (row === shown.row && column === shown.column) return;
  Object.assign(shown, { row, column });
  draw();
  readout();
}

/** Keeps the row that the keyboard has chosen on the screen. */
function reveal(row) {
  const size = place.cell ?? place.pitch, head = place.top ?? place.head, at = head + row * size;
  if (at < frame.scrollTop + head) frame.scrollTop = at - head;
  if (at + size > frame.scrollTop + frame.clientHeight) frame.scrollTop = at + size - frame.clientHeight;
}

const step = (key, by) => () => {
  const there = ["average", ...numbersOf(key)];
  if (there.length < 3) return;
  choose({ [key]: there[(there.indexOf(shown[key]) + by + there.length) % there.length], view: shown.view === "grid" ? "matrix" : shown.view });
};
const turn = by => () => choose({ sentence: (shown.sentence + by + data.sentences.length) % data.sentences.length });
const nextOf = (all, one) => all[(all.indexOf(one) + 1) % all.length];
const moveRow = by => () => {
  if (shown.view === "grid") return;
  const n = rowLabels().length, row = shown.row == null ? (by > 0 ? 0 : n - 1) : Math.min(n - 1, Math.max(0, shown.row + by));
  reveal(row);
  point(row, null);
  choose({});
};
const zoom = by => () => { byId("zoom").value = Number(byId("zoom").value) + by; draw(); reachable(); };

/** What the address says, where that is there. */
function restore() {
  const kept = address.read();
  const number = oneOf(kept.sentence, data.sentences.map(s => s.number), sentence().number);
  shown.sentence = data.sentences.findIndex(s => s.number === number);
  shown.part = oneOf(kept.part, partsThere(), shown.part);
  if (!partsThere().includes(shown.part)) shown.part = partsThere()[0];
  for (const key of ["layer", "head"]) shown[key] = oneOf(kept[key], numbersOf(key), "average");
  shown.view = oneOf(kept.view, ["matrix", "lines", "grid"], "matrix");
  const row = oneOf(kept.row, rowLabels().map((_, i) => i + 1), null);
  return { row: row == null ? null : row - 1, column: null };
}

byId("sentence").replaceChildren(...data.sentences.map((s, i) => el("option", { value: i }, `${s.number}: ${s.source_text || s.target_text}`)));
byId("sentence").addEventListener("change", event => choose({ sentence: Number(event.target.value) }));
byId("back").addEventListener("click", turn(-1));
byId("on").addEventListener("click", turn(1));
for (const key of ["layer", "head"]) {
  byId(key).addEventListener("change", event => choose({ [key]: event.target.value === "average" ? "average" : Number(event.target.value) }));
}
for (const button of document.querySelectorAll("[data-view]")) button.addEventListener("click", () => choose({ view: button.dataset.view }));
byId("least").addEventListener("input", event => choose({ least: Number(event.target.value) / 100 }));
byId("relative").addEventListener("change", () => choose({}));
byId("zoom").addEventListener("input", () => { draw(); reachable(); });
byId("weights-details").addEventListener("toggle", weightsTable);
frame.addEventListener("scroll", draw);
for (const kind of ["pointermove", "pointerdown"]) frame.addEventListener(kind, event => { if (place) point(...pointed(event)); });
frame.addEventListener("pointerleave", event => { if (event.pointerType === "mouse") point(null, null); });
copying("attention", weightRows, () => byId("picture"));
shortcuts({
  ArrowRight: step("head", 1), ArrowLeft: step("head", -1), ArrowDown: step("layer", 1), ArrowUp: step("layer", -1),
  a: () => choose({ layer: "average", head: "average" }), n: turn(1), p: turn(-1), j: moveRow(1), k: moveRow(-1),
  c: () => choose({ part: nextOf(partsThere(), shown.part) }), v: () => choose({ view: nextOf(["matrix", "lines", "grid"], shown.view) }),
  "+": zoom(10), "=": zoom(10), "-": zoom(-10), Escape: () => { point(null, null); choose({}); },
});
if (data.heads.length) headsTable(); else byId("attention-heads").hidden = true;
marks.tokens = data.sentences.flatMap(s => [...s.source, ...s.target]);
marks.change = () => { choose({}); };
marks.explain();
redraw(() => {
  if (!current) return;
  picture = paint(current);
  draw();
  drawHeads(byId("strip"), false);
  if (shown.view === "grid") drawHeads(byId("thumbnails"), true);
});
Object.assign(shown, restore());
choose({});
addEventListener("hashchange", () => choose(restore()));
