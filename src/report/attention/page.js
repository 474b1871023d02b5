const byId = id => document.getElementById(id);

/** Changes what is shown, keeps it possible, and draws it. */
async function choose(change) {
  if ("sentence" in change) Object.assign(shown, { row: null, column: null });
  if ("part" in change) Object.assign(shown, { row: null, column: null });
  Object.assign(shown, change);
  if (!partsThere().includes(shown.part)) shown.part = partsThere()[0];
  for (const key of ["layer", "head"]) {
    const there = numbersOf(key);
    if (there.length === 0) shown[key] = null;
    else if (!there.includes(shown[key])) shown[key] = "average";
  }
  controls();
  const wanted = JSON.stringify([shown.sentence, shown.part, shown.layer, shown.head]);
  const map = await matrix();
  if (wanted !== JSON.stringify([shown.sentence, shown.part, shown.layer, shown.head])) return;
  current = map;
  picture = paint(current);
  byId("strongest").textContent = `(${Number(largest(current).toPrecision(2))})`;
  frame.hidden = shown.view === "grid";
  byId("thumbnails").hidden = shown.view !== "grid";
  if (shown.view === "grid") await drawGrid();
  draw();
  readout();
}

function draw() {
  if (!current) return;
  if (shown.view === "matrix") drawMatrix();
  if (shown.view === "lines") drawLines();
}

/** Selects, buttons and the words above the picture. */
function controls() {
  const { source_text, target_text, number } = sentence();
  byId("sentence").value = shown.sentence;
  byId("pair").replaceChildren(...(isText() ? [] : [el("bdi", {}, source_text), el("span", { class: "arrow" }, "→")]), el("bdi", {}, el("b", {}, target_text)));
  byId("parts").replaceChildren(...partsThere().map(part =>
    el("button", { "data-part": part, "aria-pressed": part === shown.part, onclick: () => choose({ part }) }, titleOf(part))));
  for (const key of ["layer", "head"]) {
    const there = numbersOf(key), select = byId(key);
    const options = there.length > 1 ? ["average", ...there] : there.length ? there : ["–"];
    select.replaceChildren(...options.map(value => el("option", { value }, String(value))));
    if (there.length === 1) shown[key] = there[0];
    select.value = shown[key] ?? "–";
    select.disabled = there.length < 2;
  }
  for (const button of document.querySelectorAll("[data-view]")) button.setAttribute("aria-pressed", button.dataset.view === shown.view);
  byId("least-value").value = shown.least.toFixed(2);
  const maps = chosen();
  const words = maps.length === 1 ? describe(maps[0]) : `the mean of ${plural(maps.length, isMemory() ? "map" : "head")}`;
  byId("numbers").replaceChildren(`sentence ${number}, ${titleOf(shown.part)}: ${words}`);
  for (const row of document.querySelectorAll("#heads tbody tr")) {
    const same = maps.length === 1 && row.dataset.key === [maps[0].part, maps[0].layer, maps[0].head].join();
    row.setAttribute("aria-current", same);
  }
}

function describe({ measures: m, looks_at }) {
  if (isMemory()) return `${looks_at}: what the state holds of all tokens, counted in whole ones`;
  return `looks at: ${looks_at}; entropy ${fixed(m.entropy)} nats (${fixed(Math.exp(m.entropy), 1)} tokens), distance ${fixed(m.distance, 1)}, diagonality ${fixed(m.diagonality)}`;
}

/** The row and column that are pointed at, in words. */
function readout() {
  const box = byId("readout"), rows = rowLabels(), columns = columnLabels();
  const { row, column } = shown, cells = [];
  const bars = (title, entries) => el("div", {}, title, ...entries
    .filter(([, weight]) => weight >= 0.005).sort((a, b) => b[1] - a[1]).slice(0, 6)
    .flatMap(([token, weight]) => [el("span", { class: "bar", style: `width:${60 * weight}px` }), el("span", { class: "token" }, token), ` ${weight.toFixed(3)}   `]));
  const token = text => el("b", { class: "token" }, text);
  const share = row != null && column != null ? current.weights[row * current.columns + column].toFixed(4) : null;
  if (share != null && isMemory()) cells.push(el("div", {}, "after ", token(rows[row]), ` a share of ${share} is left of `, token(columns[column])));
  else if (share != null) cells.push(el("div", {}, token(rows[row]), " looks at ", token(columns[column]), ` with weight ${share}`));
  if (row != null) {
    const chance = ` (probability ${sentence().probabilities[row]?.toFixed(3)})`;
    const predicts = isText() ? [" predicts ", token(sentence().target[row]), `${chance} and`] : shown.part === "cross" ? [chance] : [];
    const title = isMemory() ? el("span", {}, "after ", token(rows[row]), " is left of: ") : el("span", {}, token(rows[row]), ...predicts, " looks at: ");
    cells.push(bars(title, columns.map((label, j) => [label, current.weights[row * current.columns + j]])));
  }
  if (column != null) {
    const covered = shown.part === "cross" && sentence().coverage ? ` (coverage ${sentence().coverage[column].toFixed(2)})` : "";
    const title = isMemory() ? el("span", {}, "of ", token(columns[column]), " is left after: ") : el("span", {}, token(columns[column]), `${covered} is looked at by: `);
    cells.push(bars(title, rows.map((label, i) => [label, current.weights[i * current.columns + column]])));
  }
  box.replaceChildren(...(cells.length ? cells : ["Point at a token or a cell: its row and column are shown here."]));
}

/** What lies under the pointer. */
function pointed(event) {
  const box = canvas.getBoundingClientRect(), x = event.clientX - box.left, y = event.clientY - box.top;
  const within = (i, n) => i >= 0 && i < n ? i : null;
  const [rows, columns] = [rowLabels().length, columnLabels().length];
  if (shown.view === "matrix") {
    const { left, top, cell } = place;
    return [y < top ? null : within(Math.floor((y - top + frame.scrollTop) / cell), rows),
      x < left ? null : within(Math.floor((x - left + frame.scrollLeft) / cell), columns)];
  }
  const { side, gap, pitch } = place, i = Math.floor((y - 8 + frame.scrollTop) / pitch);
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
  const size = place.cell ?? place.pitch, head = place.top ?? 8, at = head + row * size;
  if (at < frame.scrollTop + head) frame.scrollTop = at - head;
  if (at + size > frame.scrollTop + frame.clientHeight) frame.scrollTop = at + size - frame.clientHeight;
}

function headsTable() {
  const columns = [
    ["part", h => h.part], ["layer", h => h.layer ?? "–"], ["head", h => h.head ?? "–"], ["looks at", h => h.looks_at],
    ["tokens", h => Math.exp(h.entropy), 1], ["entropy", h => h.entropy, 2], ["distance", h => h.distance, 1],
    ["diagonality", h => h.diagonality, 2], ["previous", h => h.previous, 2], ["same", h => h.same, 2], ["next", h => h.next, 2],
    ["first", h => h.first, 2], ["last", h => h.last, 2],
  ];
  const table = byId("heads");
  let order = null, sign = 1;
  const rows = [...data.heads];
  const fill = () => table.replaceChildren(
    el("thead", {}, el("tr", {}, ...columns.map(([name], i) => el("th", { tabindex: 0, class: i > 3 ? "number" : "", onclick: () => sort(i) }, name + (order === i ? (sign > 0 ? " ▴" : " ▾") : ""))))),
    el("tbody", {}, ...rows.map(head => el("tr", { "data-key": [head.part, head.layer, head.head].join(), onclick: () => choose({ part: head.part, layer: head.layer, head: head.head, view: shown.view === "grid" ? "matrix" : shown.view }) },
      ...columns.map(([, value, digits]) => el("td", { class: digits == null ? "" : "number" }, digits == null ? String(value(head)) : fixed(value(head), digits)))))));
  const sort = i => {
    sign = order === i ? -sign : i > 3 ? -1 : 1;
    order = i;
    rows.sort((a, b) => { const [x, y] = [columns[i][1](a), columns[i][1](b)]; return sign * (x < y ? -1 : x > y ? 1 : 0); });
    fill();
    controls();
  };
  fill();
}

const step = (key, by) => () => {
  const there = ["average", ...numbersOf(key)];
  if (there.length < 3) return;
  choose({ [key]: there[(there.indexOf(shown[key]) + by + there.length) % there.length] });
};
const turn = by => () => choose({ sentence: (shown.sentence + by + data.sentences.length) % data.sentences.length });
const nextOf = (all, one) => all[(all.indexOf(one) + 1) % all.length];
const moveRow = by => () => {
  const n = rowLabels().length, row = shown.row == null ? (by > 0 ? 0 : n - 1) : Math.min(n - 1, Math.max(0, shown.row + by));
  reveal(row);
  point(row, null);
};

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
byId("zoom").addEventListener("input", draw);
frame.addEventListener("scroll", draw);
frame.addEventListener("pointermove", event => { if (place) point(...pointed(event)); });
frame.addEventListener("pointerdown", event => { if (place) point(...pointed(event)); });
frame.addEventListener("pointerleave", event => { if (event.pointerType === "mouse") point(null, null); });
keys({
  ArrowRight: step("head", 1), ArrowLeft: step("head", -1), ArrowDown: step("layer", 1), ArrowUp: step("layer", -1),
  a: () => choose({ layer: "average", head: "average" }), n: turn(1), p: turn(-1), j: moveRow(1), k: moveRow(-1),
  c: () => choose({ part: nextOf(partsThere(), shown.part) }), v: () => choose({ view: nextOf(["matrix", "lines", "grid"], shown.view) }),
  Escape: () => point(null, null),
});
if (data.heads.length) headsTable(); else byId("attention-heads").hidden = true;
redraw(() => { if (current) { picture = paint(current); draw(); } });
choose({});
