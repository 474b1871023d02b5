const frame = document.getElementById("frame"), room = document.getElementById("room"), canvas = document.getElementById("canvas");
const context = canvas.getContext("2d");
/** The matrix on the screen, its picture at one pixel a cell, and where its cells lie. */
let current = null, picture = null, place = null;

const fontOf = size => `${size}px ${theme("--sans")}`;
/** Zoom 0 shows everything, 100 gives every cell 28 pixels. */
const zoomed = smallest => {
  const share = Number(document.getElementById("zoom").value) / 100;
  return smallest >= 28 ? smallest : smallest * (28 / smallest) ** share;
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
  let width = 0;
  for (const label of labels) width = Math.max(width, context.measureText(label).width);
  // Some more for the label that is pointed at, which is bold.
  return Math.min(1.12 * width, most) + 10;
}

/** A picture of the weights, one pixel a cell. */
function paint(map) {
  const strongest = document.getElementById("relative").checked ? largest(map) || 1 : 1;
  const image = new ImageData(map.columns, map.rows);
  const [red, green, blue] = theme("--weight").split(",").map(Number);
  for (let i = 0; i < map.weights.length; i++) {
    const weight = map.weights[i];
    if (weight < shown.least || weight === 0) continue;
    image.data.set([red, green, blue, Math.min(255, 255 * (weight / strongest) ** 0.75)], 4 * i);
  }
  const picture = document.createElement("canvas");
  picture.width = map.columns;
  picture.height = map.rows;
  picture.getContext("2d").putImageData(image, 0, 0);
  return picture;
}

const largest = map => map.weights.reduce((a, b) => Math.max(a, b), 0);

/** The most that the frame takes of the window's height. */
const tallest = () => Math.min(760, Math.max(300, innerHeight * 0.72));

/** Fits the canvas into the frame and tells the frame how far it can be scrolled. */
function stretch(width, height) {
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

function drawMatrix() {
  const rows = rowLabels(), columns = columnLabels(), narrow = frame.clientWidth < 500;
  const most = narrow ? 84 : 150;
  const left = widest(rows, 12, most), top = widest(columns, 12, most);
  // Everything fits at zoom 0, unless cells would become specks.
  const fitting = Math.min((frame.clientWidth - left - 14) / columns.length, (tallest() - top - 16) / rows.length);
  const cell = zoomed(Math.min(32, Math.max(fitting, rows.length <= 60 ? 13 : 1.5)));
  const [width, height] = stretch(left + cell * columns.length + 12, top + cell * rows.length + 12);
  const [x, y] = [left - frame.scrollLeft, top - frame.scrollTop];
  place = { left, top, cell };
  context.save();
  context.beginPath();
  context.rect(left, top, width - left, height - top);
  context.clip();
  context.imageSmoothingEnabled = false;
  context.drawImage(picture, x, y, cell * columns.length, cell * rows.length);
  context.strokeStyle = theme("--line");
  context.strokeRect(x, y, cell * columns.length, cell * rows.length);
  cross(x, y, cell, rows.length, columns.length);
  if (cell >= 27) numbers(x, y, cell, [width, height]);
  context.restore();
  labels(rows, shown.row, cell, (label, i, size) => {
    const at = y + (i + 0.5) * cell;
    if (at < top - 2 || at > height) return;
    context.textAlign = "right";
    context.fillText(fit(label, left - 8), left - 5, at + size * 0.35);
  });
  labels(columns, shown.column, cell, (label, j, size) => {
    const at = x + (j + 0.5) * cell;
    if (at < left - 2 || at > width) return;
    context.save();
    context.translate(at + size * 0.35, top - 5);
    context.rotate(-Math.PI / 2);
    context.textAlign = "left";
    context.fillText(fit(label, top - 8), 0, 0);
    context.restore();
  });
}

/** Calls draw for every label that has room, and always for the one that is pointed at. */
function labels(all, active, cell, draw) {
  const step = Math.max(1, Math.ceil(12 / cell)), size = Math.max(9, Math.min(12, cell * 0.9));
  for (let i = 0; i < all.length; i++) {
    // Neighbours of the active label make way for it.
    if (i !== active && (i % step !== 0 || (active != null && step > 1 && Math.abs(i - active) * cell < 12))) continue;
    context.font = i === active ? `bold ${fontOf(size)}` : fontOf(size);
    context.fillStyle = theme(i === active ? "--accent" : "--ink");
    draw(all[i], i, size);
  }
}

/** The row and the column that are pointed at. */
function cross(x, y, cell, rows, columns) {
  context.strokeStyle = theme("--warm");
  if (shown.row != null) context.strokeRect(x, y + shown.row * cell, columns * cell, cell);
  if (shown.column != null) context.strokeRect(x + shown.column * cell, y, cell, rows * cell);
}

/** Weights as numbers in the cells that are on the screen. */
function numbers(x, y, cell, [width, height]) {
  context.font = fontOf(10);
  context.textAlign = "center";
  const strongest = document.getElementById("relative").checked ? largest(current) : 1;
  const from = Math.max(0, Math.floor((place.top - y) / cell)), to = Math.min(current.rows, Math.ceil((height - y) / cell));
  const first = Math.max(0, Math.floor((place.left - x) / cell)), last = Math.min(current.columns, Math.ceil((width - x) / cell));
  for (let i = from; i < to; i++) for (let j = first; j < last; j++) {
    const weight = current.weights[i * current.columns + j];
    if (weight < Math.max(shown.least, 0.005)) continue;
    context.fillStyle = weight / strongest > 0.55 ? theme("--ground") : theme("--ink");
    context.fillText(weight.toFixed(2).replace(/^0/, ""), x + (j + 0.5) * cell, y + (i + 0.5) * cell + 3.5);
  }
}

/** Both texts as columns, and a line for each weight that is not hidden. */
function drawLines() {
  const rows = rowLabels(), columns = columnLabels(), pitch = zoomed(20), most = frame.clientWidth * 0.36;
  const side = Math.max(widest(rows, 13, most), widest(columns, 13, most));
  const gap = Math.max(90, Math.min(360, frame.clientWidth - 2 * side - 16));
  const [, height] = stretch(2 * side + gap, Math.max(rows.length, columns.length) * pitch + 16);
  const y = 8 - frame.scrollTop, middle = i => y + (i + 0.5) * pitch;
  place = { side, gap, pitch };
  const strongest = document.getElementById("relative").checked ? largest(current) || 1 : 1;
  // Without a token pointed at, only lines that stand out; with one, all of its lines that can be seen.
  const pointing = shown.row != null || shown.column != null;
  const least = Math.max(shown.least, pointing ? strongest / 50 : Math.max(0.02, strongest / 50)), visible = at => at > -pitch && at < height + pitch;
  for (let i = 0; i < rows.length; i++) {
    if (shown.row != null && i !== shown.row) continue;
    for (let j = 0; j < columns.length; j++) {
      const weight = current.weights[i * current.columns + j];
      if (weight < least || (shown.row == null && shown.column != null && j !== shown.column)) continue;
      if (!visible(middle(i)) && !visible(middle(j))) continue;
      context.strokeStyle = `rgba(${theme("--weight")}, ${Math.min(1, 0.15 + weight / strongest)})`;
      context.lineWidth = 0.5 + 5 * weight / strongest;
      context.beginPath();
      context.moveTo(side, middle(i));
      context.bezierCurveTo(side + gap / 2, middle(i), side + gap / 2, middle(j), side + gap, middle(j));
      context.stroke();
    }
  }
  context.lineWidth = 1;
  labels(rows, shown.row, pitch, (label, i) => {
    if (!visible(middle(i))) return;
    context.textAlign = "right";
    context.fillText(fit(label, side - 8), side - 5, middle(i) + 4.5);
  });
  labels(columns, shown.column, pitch, (label, j) => {
    if (!visible(middle(j))) return;
    context.textAlign = "left";
    context.fillText(fit(label, side - 8), side + gap + 5, middle(j) + 4.5);
  });
}

/** Every head of the part as a small picture. */
async function drawGrid() {
  const box = document.getElementById("thumbnails"), maps = mapsOf(), at = shown.sentence, part = shown.part;
  const heads = Math.max(1, numbersOf("head").length);
  box.style.gridTemplateColumns = `repeat(${heads}, minmax(84px, 1fr))`;
  const figures = [];
  for (const map of maps) {
    const picture = paint({ rows: map.rows, columns: map.columns, weights: await weightsOf(map) });
    if (at !== shown.sentence || part !== shown.part || shown.view !== "grid") return;
    const open = () => choose({ layer: map.layer, head: map.head, view: "matrix" });
    const caption = el("figcaption", {}, [map.layer && `layer ${map.layer}`, map.head && `head ${map.head}`].filter(Boolean).join(", "), el("br"), map.looks_at);
    figures.push(el("figure", { tabindex: 0, onclick: open, onkeydown: e => { if (e.key === "Enter") open(); } }, picture, caption));
  }
  box.replaceChildren(...figures);
}
