const byId = id => document.getElementById(id);
const canvas = byId("canvas"), context = canvas.getContext("2d");
const shown = { map: 0, colour: "length", point: null, label: null, find: "" };
const labels = [...new Set(data.sentences.map(s => s.label).filter(label => label != null))];
const longest = Math.max(1, ...data.sentences.map(s => s.length)), shortest = Math.min(...data.sentences.map(s => s.length));
if (labels.length) shown.colour = "label";

const points = () => data.maps[shown.map][1].points;
let placed = [];

function colourOf(sentence) {
  if (shown.colour === "label") return sentence.label == null ? theme("--muted") : data.colours[labels.indexOf(sentence.label) % data.colours.length];
  const share = longest === shortest ? 0.5 : (sentence.length - shortest) / (longest - shortest);
  return `hsl(${220 - 190 * share} 75% 48%)`;
}

/** Whether a point is among those that are looked for. */
function lit(point) {
  const sentence = data.sentences[point.sentence];
  if (shown.label != null && sentence.label !== shown.label) return false;
  return !shown.find || sentence.text.toLowerCase().includes(shown.find);
}

function draw() {
  const width = byId("plot").clientWidth, height = Math.min(width, Math.max(320, innerHeight * 0.66)), ratio = devicePixelRatio || 1;
  canvas.width = width * ratio;
  canvas.height = height * ratio;
  canvas.style.height = `${height}px`;
  context.setTransform(ratio, 0, 0, ratio, 0, 0);
  const range = axis => points().reduce(([low, high], p) => [Math.min(low, p.at[axis]), Math.max(high, p.at[axis])], [Infinity, -Infinity]);
  const [[left, right], [low, high]] = [range(0), range(1)];
  // One scale for both directions, so that distances are true.
  const scale = Math.min((width - 40) / Math.max(right - left, 1e-9), (height - 40) / Math.max(high - low, 1e-9));
  const x = at => width / 2 + (at - (left + right) / 2) * scale, y = at => height / 2 - (at - (low + high) / 2) * scale;
  placed = points().map(p => [x(p.at[0]), y(p.at[1])]);
  const radius = points().length > 400 ? 3 : 5;
  for (const pass of [false, true]) points().forEach((point, i) => {
    if (lit(point) !== pass) return;
    context.globalAlpha = pass ? 0.9 : 0.12;
    context.fillStyle = colourOf(data.sentences[point.sentence]);
    context.beginPath();
    context.arc(placed[i][0], placed[i][1], i === shown.point ? radius + 3 : radius, 0, 7);
    context.fill();
    if (i === shown.point) { context.lineWidth = 2; context.strokeStyle = theme("--ink"); context.stroke(); }
  });
  context.globalAlpha = 1;
  if (shown.map === 1) names();
}

/** Tokens beside their points, where they do not touch. */
function names() {
  const taken = placed.map(([x, y]) => [x - 4, y - 4, x + 4, y + 4]);
  context.font = `11px ${theme("--sans")}`;
  context.fillStyle = theme("--muted");
  points().forEach((point, i) => {
    if (!lit(point)) return;
    const [x, y] = placed[i], room = [x + 6, y - 6, x + 6 + context.measureText(point.token).width, y + 6];
    if (taken.some((other, k) => k !== i && room[0] < other[2] && other[0] < room[2] && room[1] < other[3] && other[1] < room[3])) return;
    taken.push(room);
    context.fillText(point.token, room[0], y + 4);
  });
}

function readout() {
  const point = points()[shown.point];
  if (!point) return byId("readout").replaceChildren("Point at a dot: its sentence is shown here.");
  const sentence = data.sentences[point.sentence];
  byId("readout").replaceChildren(...[point.token && el("div", {}, "token ", el("b", {}, point.token)), el("div", {}, el("bdi", {}, sentence.text)),
    el("div", { class: "muted" }, `line ${sentence.number}, ${sentence.length} tokens${sentence.label == null ? "" : `, ${sentence.label}`}`)].filter(Boolean));
}

function controls() {
  byId("maps").replaceChildren(...data.maps.map(([name], i) => el("button", { "aria-pressed": i === shown.map, onclick: () => change({ map: i, point: null }) }, name)));
  const colours = labels.length ? ["label", "length"] : ["length"];
  byId("colour").replaceChildren(...colours.map(value => el("option", { value }, value)));
  byId("colour").value = shown.colour;
  const { explained } = data.maps[shown.map][1];
  const percent = part => `${(100 * part).toFixed(1)} %`;
  byId("explained").textContent = `Across: ${percent(explained[0])} of the variance; up: ${percent(explained[1])}; what is not shown: ${percent(Math.max(0, 1 - explained[0] - explained[1]))}.`;
  const legend = shown.colour === "label"
    ? labels.map(label => el("button", { "aria-pressed": label === shown.label, onclick: () => change({ label: label === shown.label ? null : label }) },
      el("i", { style: `background:${data.colours[labels.indexOf(label) % data.colours.length]}` }), label))
    : [el("span", { class: "muted" }, `blue: ${shortest} tokens, red: ${longest} tokens`)];
  byId("legend").replaceChildren(...legend);
}

function change(what) {
  Object.assign(shown, what);
  controls();
  draw();
  readout();
}

function nearest(event) {
  const box = canvas.getBoundingClientRect(), x = event.clientX - box.left, y = event.clientY - box.top;
  let best = null, least = 18 ** 2;
  placed.forEach(([px, py], i) => {
    const distance = (px - x) ** 2 + (py - y) ** 2;
    if (distance < least && lit(points()[i])) [best, least] = [i, distance];
  });
  return best;
}

const point = index => { if (index !== shown.point) { shown.point = index; draw(); readout(); } };
const move = by => () => point(((shown.point ?? (by > 0 ? -1 : 0)) + by + points().length) % points().length);
canvas.addEventListener("pointermove", event => point(nearest(event)));
canvas.addEventListener("pointerdown", event => point(nearest(event)));
byId("colour").addEventListener("change", event => change({ colour: event.target.value, label: null }));
byId("find").addEventListener("input", event => change({ find: event.target.value.trim().toLowerCase() }));
keys({
  v: () => change({ map: 1 - shown.map, point: null }), c: () => labels.length && change({ colour: shown.colour === "label" ? "length" : "label", label: null }),
  j: move(1), k: move(-1), Escape: () => change({ point: null, label: null }),
});
controls();
redraw(draw);
