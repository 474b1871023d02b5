const canvas = byId("canvas");
let context = canvas.getContext("2d");
let placed = [];

const colourOfLabel = label => theme(`--c${labels.indexOf(label) % 12}`);
function colourOf(sentence) {
  if (shown.colour === "label") return sentence.label == null ? theme("--muted") : colourOfLabel(sentence.label);
  const share = longest === shortest ? 0.5 : (sentence.length - shortest) / (longest - shortest);
  return `rgb(${blend(...["--against", "--weight"].map(name => theme(name).split(",").map(Number)), share).map(Math.round).join(", ")})`;
}

function draw() {
  const width = byId("plot").clientWidth, top = byId("plot").getBoundingClientRect().top + scrollY;
  const height = Math.min(1.1 * width, Math.max(340, innerHeight - Math.min(top, innerHeight / 2) - 14));
  if (!(context instanceof Pen)) {
    const ratio = devicePixelRatio || 1;
    canvas.width = width * ratio;
    canvas.height = height * ratio;
    canvas.style.height = `${height}px`;
    context.setTransform(ratio, 0, 0, ratio, 0, 0);
  }
  const range = axis => points().reduce(([low, high], p) => [Math.min(low, p.at[axis]), Math.max(high, p.at[axis])], [Infinity, -Infinity]);
  const [[left, right], [low, high]] = [range(0), range(1)];
  // One scale for both directions, so that distances are true.
  const scale = Math.min((width - 60) / Math.max(right - left, 1e-9), (height - 70) / Math.max(high - low, 1e-9));
  const x = at => width / 2 + (at - (left + right) / 2) * scale, y = at => height / 2 - (at - (low + high) / 2) * scale;
  placed = points().map(p => [x(p.at[0]), y(p.at[1])]);
  const radius = (points().length > 400 ? 3 : points().length > 120 ? 5 : 7) * (isWall() ? 1.4 : 1);
  for (const pass of [false, true]) points().forEach((point, i) => {
    if (lit(point) !== pass) return;
    context.globalAlpha = pass ? 1 : 0.15;
    context.fillStyle = colourOf(sentenceOf(point));
    context.beginPath();
    context.arc(placed[i][0], placed[i][1], i === shown.point ? radius + 4 : radius, 0, 7);
    context.fill();
    if (i === shown.point) { context.lineWidth = 3; context.strokeStyle = theme("--ink"); context.stroke(); }
  });
  context.globalAlpha = 1;
  // Over the dots, from edge to edge: where dots lie close, lines below them would not be seen.
  drawSwapped(radius);
  drawNearest(radius);
  if (shown.map === 1) names(width);
  else if (shown.colour === "label") clusterNames(width, height, radius);
}

/** A line between the edges of two points, dashed or not, with a ground around it. */
function line(from, to, radius, colour, lineWidth, dashes = []) {
  const [[x1, y1], [x2, y2]] = [placed[from], placed[to]], far = Math.hypot(x2 - x1, y2 - y1);
  // Points that lie on each other are joined at their middles.
  const share = far > 4 * radius ? radius / far : 0, [dx, dy] = [share * (x2 - x1), share * (y2 - y1)];
  for (const [strokeStyle, width, pattern] of [[theme("--ground"), lineWidth + 2, []], [colour, lineWidth, dashes]]) {
    Object.assign(context, { strokeStyle, lineWidth: width });
    context.setLineDash(pattern);
    context.beginPath();
    context.moveTo(x1 + dx, y1 + dy);
    context.lineTo(x2 - dx, y2 - dy);
    context.stroke();
  }
  context.setLineDash([]);
}

/** The pairs that say the opposite with the same words. */
function drawSwapped(radius) {
  if (!shown.swapped || shown.map === 1) return;
  context.globalAlpha = shown.point == null ? 0.8 : 0.25;
  for (const [i, j] of swapped) if (lit(points()[i]) && lit(points()[j])) line(i, j, radius, theme("--warm"), 2.5, [7, 5]);
  context.globalAlpha = 1;
}

/** From the point that is pointed at to its nearest. */
function drawNearest(radius) {
  if (shown.point == null) return;
  nearestOf(shown.point).forEach(([other], rank) => line(shown.point, other, radius, theme("--accent"), 5 - rank));
}

/** A text with a ground around it, so that it is read over points and lines. */
function over(text, x, y, colour) {
  context.lineWidth = 5;
  context.strokeStyle = theme("--ground");
  context.strokeText(text, x, y);
  context.fillStyle = colour;
  context.fillText(text, x, y);
}

/** The label of each cluster over its points, moved where it would lie on another. */
function clusterNames(width, height, radius) {
  const size = isWall() ? 24 : 16, taken = [];
  context.font = `bold ${size}px ${theme("--sans")}`;
  context.textAlign = "center";
  for (const label of labels) {
    const own = points().flatMap((point, i) => sentenceOf(point).label === label && lit(point) ? [placed[i]] : []);
    if (own.length === 0) continue;
    const wide = context.measureText(label).width, middle = own.reduce((sum, [x]) => sum + x, 0) / own.length;
    const [low, high] = [Math.min, Math.max].map(pick => own.reduce((most, [, y]) => pick(most, y), own[0][1]));
    const [west, east] = [Math.min, Math.max].map(pick => own.reduce((most, [x]) => pick(most, x), own[0][0]));
    // Above its points, below them or beside them: where it covers least.
    const gap = radius + 7, places = [[middle, low - gap], [middle, high + gap + size * 0.75], [east + gap + wide / 2, (low + high) / 2 + size * 0.35], [west - gap - wide / 2, (low + high) / 2 + size * 0.35],
      [middle, low - gap - size * 1.3], [middle, high + gap + size * 2]].map(([x, y]) => [Math.min(width - wide / 2 - 5, Math.max(wide / 2 + 5, x)), y]);
    const cost = ([x, y]) => {
      const isOut = x - wide / 2 < 4 || x + wide / 2 > width - 4 || y < size + 2 || y > height - 4;
      const covered = placed.filter(([px, py]) => Math.abs(px - x) < wide / 2 + radius && py > y - size - radius && py < y + radius).length;
      return covered + (isOut ? 100 : 0) + 50 * taken.filter(([x2, y2, wide2]) => Math.abs(x - x2) < (wide + wide2) / 2 + 6 && Math.abs(y - y2) < size * 1.1).length;
    };
    const best = places.reduce((best, place) => cost(place) < cost(best) ? place : best);
    const x = Math.min(width - wide / 2 - 4, Math.max(wide / 2 + 4, best[0])), y = Math.min(height - 4, Math.max(size + 2, best[1]));
    taken.push([x, y, wide]);
    over(label, x, y, colourOfLabel(label));
  }
  context.textAlign = "left";
}

/** Rectangles, of which those that touch another are found by where they lie: of a thousand sentences there are many. */
class Rooms {
  constructor() { Object.assign(this, { cells: new Map(), side: 32 }); }
  /** The cells that a rectangle lies in. */
  * over([left, top, right, bottom]) {
    const [x1, y1, x2, y2] = [left, top, right, bottom].map(at => Math.floor(at / this.side));
    for (let x = x1; x <= x2; x++) for (let y = y1; y <= y2; y++) yield x * 65536 + y;
  }
  take(room, owner) {
    for (const cell of this.over(room)) {
      if (!this.cells.has(cell)) this.cells.set(cell, []);
      this.cells.get(cell).push([room, owner]);
    }
  }
  /** Whether nothing but what belongs to `owner` is where a rectangle is. */
  isFree(room, owner) {
    for (const cell of this.over(room)) for (const [other, whose] of this.cells.get(cell) ?? []) {
      if (whose !== owner && room[0] < other[2] && other[0] < room[2] && room[1] < other[3] && other[1] < room[3]) return false;
    }
    return true;
  }
}

/** Tokens beside their points, where they do not touch: to the left where there is no room to the right. */
function names(width) {
  const rooms = new Rooms(), size = isWall() ? 22 : 13;
  placed.forEach(([x, y], i) => rooms.take([x - 4, y - 4, x + 4, y + 4], i));
  context.font = `${size}px ${theme("--sans")}`;
  context.textAlign = "left";
  context.fillStyle = theme("--ink");
  points().forEach((point, i) => {
    if (!lit(point)) return;
    const text = shownToken(point.token), [x, y] = placed[i], wide = context.measureText(text).width;
    const left = x + 8 + wide < width ? x + 8 : x - 8 - wide, room = [left, y - size / 2, left + wide, y + size / 2];
    if (!rooms.isFree(room, i)) return;
    rooms.take(room, -1);
    context.fillText(text, room[0], y + size * 0.35);
  });
}

canvas.shapes = () => {
  const screen = context, pen = context = new Pen();
  draw();
  context = screen;
  return pen.drawn();
};
