const frame = document.getElementById("frame"), room = document.getElementById("room"), canvas = document.getElementById("canvas");
/** What is painted on: the canvas, or a pen that writes SVG. */
let context = canvas.getContext("2d");
/** The matrix on the screen, its picture at one pixel a cell, and where its cells lie. */
let current = null, picture = null, place = null;

const fontOf = size => `${size}px ${theme("--sans")}`;
const isRelative = () => document.getElementById("relative").checked;
const largest = map => map.weights.reduce((a, b) => Math.max(a, b), 0);
const strongest = () => isRelative() ? largest(current) || 1 : 1;
/** Zoom 0 shows everything, 100 gives every cell the size of a number. */
const zoomed = smallest => {
  const share = Number(document.getElementById("zoom").value) / 100, most = 3 * letter();
  return smallest >= most ? smallest : smallest * (most / smallest) ** share;
};

/** The text, cut with an ellipsis where it is wider than width. */
function fit(text, width) {
  if (context.measureText(text).width <= width) return text;
  const parts = [...text];
  while (parts.length > 1 && context.measureText(parts.join("") + "…").width > width) parts.pop();
  return parts.join("") + "…";
}

function widest(labels, size, most) {
  context.font = fontOf(size);
  // Some more for the label that is pointed at, which is bold.
  return Math.min(1.12 * labels.reduce((width, label) => Math.max(width, context.measureText(label).width), 0), most) + 10;
}

/** How strongly a weight is painted, from 0 to 1. */
const strength = (weight, most) => Math.min(1, (weight / most) ** 0.75);

/** A picture of the weights, one pixel a cell. */
function paint(map) {
  const most = isRelative() ? largest(map) || 1 : 1;
  const image = new ImageData(map.columns, map.rows);
  const colour = theme("--weight").split(",").map(Number);
  map.weights.forEach((weight, i) => {
    if (weight >= shown.least && weight > 0) image.data.set([...colour, 255 * strength(weight, most)], 4 * i);
  });
  const picture = document.createElement("canvas");
  picture.width = map.columns;
  picture.height = map.rows;
  picture.getContext("2d").putImageData(image, 0, 0);
  return picture;
}

/** The most that the frame takes of the window's height: what is left below the controls. */
function tallest() {
  const top = frame.getBoundingClientRect().top + scrollY;
  return Math.max(320, Math.min(1200, innerHeight - Math.min(top, innerHeight / 2) - 12));
}

/** Fits the canvas into the frame and tells the frame how far it can be scrolled. */
function stretch(width, height) {
  if (context instanceof Pen) { Object.assign(context, { width, height }); return [width, height]; }
  const ratio = devicePixelRatio || 1;
  frame.style.height = `${Math.min(tallest(), height + 2)}px`;
  room.style.width = `${width}px`;
  room.style.height = `${height}px`;
  const [w, h] = [Math.min(frame.clientWidth, Math.max(width, 1)), Math.min(frame.clientHeight, Math.max(height, 1))];
  canvas.width = w * ratio;
  canvas.height = h * ratio;
  canvas.style.width = `${w}px`;
  canvas.style.height = `${h}px`;
  context.setTransform(ratio, 0, 0, ratio, 0, 0);
  context.clearRect(0, 0, w, h);
  return [w, h];
}

/** Calls draw for every label that has room, and always for the one that is pointed at. */
function labels(all, active, cell, size, draw) {
  const step = Math.max(1, Math.ceil(size / cell));
  for (let i = 0; i < all.length; i++) {
    // Neighbours of the active label make way for it.
    if (i !== active && (i % step !== 0 || (active != null && step > 1 && Math.abs(i - active) * cell < size))) continue;
    context.font = i === active ? `bold ${fontOf(size)}` : fontOf(size);
    context.fillStyle = theme(i === active ? "--accent" : "--ink");
    draw(all[i], i);
  }
}

/** The row and the column that are pointed at. */
function cross(x, y, rows, columns) {
  const { cell, wide } = place;
  context.strokeStyle = theme("--warm");
  context.lineWidth = 2;
  if (shown.row != null) context.strokeRect(x, y + shown.row * cell, columns * wide, cell);
  if (shown.column != null) context.strokeRect(x + shown.column * wide, y, wide, rows * cell);
  context.lineWidth = 1;
}

/** Weights as numbers in the cells that are on the screen, black or white by their ground. */
function numbers(x, y, [width, height], size) {
  const { cell, wide } = place;
  context.font = fontOf(size);
  context.textAlign = "center";
  const ink = theme("--weight").split(",").map(Number), ground = channels(theme("--ground")), most = strongest();
  const from = Math.max(0, Math.floor((place.top - y) / cell)), to = Math.min(current.rows, Math.ceil((height - y) / cell));
  const first = Math.max(0, Math.floor((place.left - x) / wide)), last = Math.min(current.columns, Math.ceil((width - x) / wide));
  for (let i = from; i < to; i++) for (let j = first; j < last; j++) {
    const weight = current.weights[i * current.columns + j];
    if (weight < Math.max(shown.least, 0.005)) continue;
    context.fillStyle = readable(blend(ink, ground, strength(weight, most)));
    context.fillText(weight.toFixed(2).replace(/^0/, ""), x + (j + 0.5) * wide, y + (i + 0.5) * cell + size * 0.36);
  }
}

/** What the colours mean: a bar from no weight to the darkest. */
function colourBar(x, y, height, size) {
  const n = 32, most = strongest(), colour = theme("--weight").split(",").map(Number), ground = channels(theme("--ground"));
  for (let i = 0; i < n; i++) {
    context.fillStyle = `rgb(${blend(colour, ground, strength((n - 1 - i) / (n - 1), 1)).map(Math.round).join(", ")})`;
    context.fillRect(x, y + i * height / n, 14, height / n + 0.5);
  }
  context.strokeStyle = theme("--line");
  context.strokeRect(x, y, 14, height);
  context.font = fontOf(size);
  context.fillStyle = theme("--ink");
  context.textAlign = "left";
  context.fillText(Number(most.toPrecision(2)).toString(), x + 20, y + size * 0.8);
  context.fillText("0", x + 20, y + height);
}
