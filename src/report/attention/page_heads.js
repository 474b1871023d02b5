/** A head as a small picture to click. */
function thumbnail(map, weights, isCaptioned) {
  const image = paint({ rows: map.rows, columns: map.columns, weights });
  image.setAttribute("aria-hidden", "true");
  const isIt = shown.layer === map.layer && shown.head === map.head;
  return el("button", { type: "button", class: "thumbnail", "aria-pressed": isIt, "aria-label": isCaptioned ? null : `${headName(map)}, looks at ${map.looks_at}`,
    "data-tip": `${headName(map)}\nlooks at: ${map.looks_at}`, "data-map": [map.layer, map.head].join(),
    onclick: () => choose({ layer: map.layer, head: map.head, view: shown.view === "grid" ? "matrix" : shown.view }) },
    image, isCaptioned ? el("span", { class: "caption" }, headName(map), el("br"), map.looks_at) : null);
}

/** Every head of the part beside the matrix, layers as rows; or, larger, in its place. */
async function drawHeads(box, isGrid) {
  const maps = mapsOf(), wanted = JSON.stringify([shown.sentence, shown.part, shown.least, isRelative()]);
  const heads = Math.max(1, numbersOf("head").length), layers = numbersOf("layer");
  const weights = await Promise.all(maps.map(weightsOf));
  if (wanted !== JSON.stringify([shown.sentence, shown.part, shown.least, isRelative()])) return;
  const isFocused = box.contains(document.activeElement) ? document.activeElement.dataset.map : null;
  if (maps.length < 2) { box.replaceChildren(); return; }
  box.style.gridTemplateColumns = isGrid ? `repeat(${heads}, minmax(96px, 1fr))` : `${layers.length > 1 ? "1.4em " : ""}repeat(${heads}, minmax(20px, 64px))`;
  const isMean = shown.layer === "average" && shown.head === "average";
  const all = isGrid ? [] : [el("button", { type: "button", class: "strip-mean", "data-map": "mean", "aria-pressed": isMean, onclick: () => choose({ layer: "average", head: "average" }) }, `mean of all ${maps.length}`)];
  maps.forEach((map, i) => {
    if (!isGrid && layers.length > 1 && (i === 0 || maps[i - 1].layer !== map.layer)) {
      const row = el("span", { class: "of-layer", title: `layer ${map.layer}` }, `${map.layer}`);
      row.style.gridColumn = "1";
      all.push(row);
    }
    all.push(thumbnail(map, weights[i], isGrid));
  });
  box.replaceChildren(...all);
  if (isFocused) [...box.querySelectorAll("[data-map]")].find(one => one.dataset.map === isFocused)?.focus();
}

function headsTable() {
  const columns = [
    ["part", h => h.part], ["layer", h => h.layer ?? "–"], ["head", h => h.head ?? "–"], ["looks at", h => h.looks_at],
    ["tokens", h => Math.exp(h.entropy), 1], ["entropy", h => h.entropy, 2], ["distance", h => h.distance, 1],
    ["diagonality", h => h.diagonality, 2], ["previous", h => h.previous, 2], ["same", h => h.same, 2], ["next", h => h.next, 2],
    ["first", h => h.first, 2], ["last", h => h.last, 2],
  ];
  const open = head => {
    choose({ part: head.part, layer: head.layer, head: head.head, view: shown.view === "grid" ? "matrix" : shown.view });
    // The picture that changes is to be seen.
    byId("picture").scrollIntoView({ block: "nearest" });
  };
  const cell = (head, [, value, digits], i) => {
    const text = digits == null ? String(value(head)) : number(value(head), digits);
    return el("td", { class: digits == null ? null : "number", "data-value": digits == null ? null : value(head) }, i === 0 ? el("button", { type: "button" }, text) : text);
  };
  byId("heads").replaceChildren(
    el("thead", {}, el("tr", {}, ...columns.map(([name, , digits]) => el("th", { scope: "col", class: digits == null ? null : "number" }, el("button", { type: "button" }, name))))),
    el("tbody", {}, ...data.heads.map(head => el("tr", { "data-key": [head.part, head.layer, head.head].join(), onclick: () => open(head) }, ...columns.map((column, i) => cell(head, column, i))))));
  sortable(byId("heads"));
}

/** What is painted, as rows of numbers with their names. */
function weightRows() {
  const columns = columnLabels(), rows = rowLabels();
  return [["", ...columns], ...rows.map((name, i) => [name, ...columns.map((_, j) => Number(current.weights[i * current.columns + j].toFixed(5)))])];
}

/** The numbers of the picture as a table, made when it is opened. */
function weightsTable() {
  if (!byId("weights-details").open || !current) return;
  const [head, ...rows] = weightRows();
  byId("weights").replaceChildren(el("thead", {}, el("tr", {}, ...head.map((name, i) => i ? el("th", { scope: "col", class: "number" }, shownToken(name)) : el("td")))),
    el("tbody", {}, ...rows.map(([name, ...numbers]) => el("tr", {}, el("th", { scope: "row" }, shownToken(name)), ...numbers.map(value => el("td", { class: "number" }, number(value, 3)))))));
  reachable();
}
