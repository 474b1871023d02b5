function readout() {
  const point = points()[shown.point];
  if (!point) return byId("readout").replaceChildren("Point at a dot: its sentence is shown here, and lines lead to its three nearest.");
  const sentence = sentenceOf(point), near = nearestOf(shown.point);
  const other = ([i, cosine]) => {
    const it = points()[i], s = sentenceOf(it);
    return el("li", {}, it.token ? el("b", {}, token(it.token), " ") : null, el("bdi", {}, s.text), el("span", { class: "muted" }, ` ${s.label == null ? "" : `${s.label}, `}cosine ${number(cosine)}`));
  };
  const parts = [point.token && el("div", {}, "token ", el("b", {}, token(point.token))), el("div", {}, el("b", {}, el("bdi", {}, sentence.text))),
    el("div", { class: "muted" }, `line ${sentence.number}, ${sentence.length} tokens${sentence.label == null ? "" : `, ${sentence.label}`}`),
    near.length ? el("div", {}, "nearest, in all dimensions:", el("ol", {}, ...near.map(other))) : null,
    shown.map === 0 && twins[point.sentence].length ? el("div", { class: "warm" }, "swapped: ", ...twins[point.sentence].map(i => el("bdi", {}, data.sentences[i].text, " "))) : null];
  byId("readout").replaceChildren(...parts.filter(Boolean));
}

function controls() {
  const focused = document.activeElement?.dataset?.at;
  byId("headline").replaceChildren(...headline());
  byId("lesson").textContent = shown.map === 0 && shown.swapped ? lesson() : "";
  byId("swapped-label").hidden = swapped.length === 0 || shown.map === 1;
  byId("swapped").checked = shown.swapped;
  byId("maps").replaceChildren(...data.maps.map(([name], i) => el("button", { type: "button", "data-at": name, "aria-pressed": i === shown.map, onclick: () => change({ map: i, point: null }) }, name)));
  const colours = labels.length ? ["label", "length"] : ["length"];
  byId("colour").replaceChildren(...colours.map(value => el("option", { value }, value)));
  byId("colour").value = shown.colour;
  const { explained } = data.maps[shown.map][1];
  const part = share => `${number(100 * share, 1)} %`;
  byId("explained").textContent = `Across: ${part(explained[0])} of the variance; up: ${part(explained[1])}; what is not shown: ${part(Math.max(0, 1 - explained[0] - explained[1]))}.`;
  const scale = () => {
    const bar = el("span", { class: "scale", role: "img", "aria-label": `from ${shortest} to ${longest} tokens` });
    bar.style.background = `linear-gradient(to right, ${[shortest, (shortest + longest) / 2, longest].map(length => colourOf({ length })).join(", ")})`;
    return [bar, el("span", { class: "small muted" }, `blue: ${plural(shortest, "token")}`), el("span", { class: "small muted tools" }, `orange: ${plural(longest, "token")}`)];
  };
  const legend = shown.colour === "label"
    ? labels.map((label, i) => el("button", { type: "button", "data-at": `label ${i}`, "aria-pressed": label === shown.label, onclick: () => change({ label: label === shown.label ? null : label, point: null }) },
      el("i", { style: `background:${colourOfLabel(label)}` }), label))
    : scale();
  byId("legend").replaceChildren(...legend);
  if (focused) [...document.querySelectorAll("[data-at]")].find(one => one.dataset.at === focused)?.focus();
}

function pointsTable() {
  if (!byId("points-details").open) return;
  const [head, ...rows] = pointRows(), table = byId("points");
  const cell = (value, i, at) => typeof value === "number" ? el("td", { class: "number", "data-value": value }, Number.isInteger(value) ? String(value) : number(value, 3))
    : el("td", {}, head[at] === "sentence" ? el("button", { type: "button", onclick: () => { point(i); byId("plot").scrollIntoView({ block: "nearest" }); } }, value) : value);
  table.replaceChildren(el("thead", {}, el("tr", {}, ...head.map(name => el("th", { scope: "col" }, el("button", { type: "button" }, name))))),
    el("tbody", {}, ...rows.map((row, i) => el("tr", {}, ...row.map((value, at) => cell(value, i, at))))));
  sortable(table);
  reachable();
}

function keep() {
  const { map, colour, point, label } = shown;
  address.write({ map: map ? "tokens" : null, colour: colour === (labels.length ? "label" : "length") ? null : colour, point: point == null ? null : point + 1, label, marks: marks.areShown ? 1 : null });
}

function change(what) {
  Object.assign(shown, what);
  controls();
  draw();
  readout();
  pointsTable();
  keep();
}

function nearest(event) {
  const box = canvas.getBoundingClientRect(), x = event.clientX - box.left, y = event.clientY - box.top;
  let best = null, least = 22 ** 2;
  placed.forEach(([px, py], i) => {
    const distance = (px - x) ** 2 + (py - y) ** 2;
    if (distance < least && lit(points()[i])) [best, least] = [i, distance];
  });
  return best;
}

const point = index => { if (index !== shown.point) { shown.point = index; draw(); readout(); keep(); } };
/** To the next point that the legend and the search have left lit. */
const move = by => () => {
  const there = points().flatMap((p, i) => lit(p) ? [i] : []);
  if (there.length === 0) return;
  const at = there.indexOf(shown.point);
  point(there[at < 0 ? (by > 0 ? 0 : there.length - 1) : (at + by + there.length) % there.length]);
};

/** What the address says, where that is there. */
function restore() {
  const kept = address.read();
  shown.map = kept.map === "tokens" ? 1 : 0;
  shown.colour = oneOf(kept.colour, labels.length ? ["label", "length"] : ["length"], labels.length ? "label" : "length");
  shown.label = oneOf(kept.label, labels, null);
  shown.point = oneOf(kept.point, points().map((_, i) => i + 1), null);
  if (shown.point != null) shown.point -= 1;
}

canvas.says = event => { const i = nearest(event); return i == null ? null : `${points()[i].token ? `${shownToken(points()[i].token)}: ` : ""}${sentenceOf(points()[i]).text}`; };
canvas.addEventListener("pointermove", event => point(nearest(event)));
canvas.addEventListener("pointerdown", event => point(nearest(event)));
byId("colour").addEventListener("change", event => change({ colour: event.target.value, label: null }));
byId("find").addEventListener("input", event => change({ find: event.target.value.trim().toLowerCase(), point: null }));
byId("swapped").addEventListener("change", event => change({ swapped: event.target.checked }));
byId("points-details").addEventListener("toggle", pointsTable);
copying("states", pointRows, () => byId("plot"));
shortcuts({
  v: () => change({ map: 1 - shown.map, point: null }), c: () => labels.length && change({ colour: shown.colour === "label" ? "length" : "label", label: null }),
  j: move(1), k: move(-1), s: () => change({ swapped: !shown.swapped }), Escape: () => change({ point: null, label: null }),
});
marks.tokens = data.maps[1][1].points.map(point => point.token);
marks.change = () => change({});
marks.explain();
restore();
change({});
redraw(() => { controls(); draw(); reachable(); });
addEventListener("hashchange", () => { restore(); change({}); });
