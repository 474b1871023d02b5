/** Numbers that were packed as 32-bit floats in base64. */
function floatsOf(text) {
  const bytes = Uint8Array.from(atob(text), c => c.charCodeAt(0));
  return new Float32Array(bytes.buffer);
}

/** The numbers of a vector that the page has: all of a short one, the first of a long one. */
const valuesOf = vector => vector.values ??= floatsOf(vector.packed);

const greatest = numbers => numbers.reduce((most, value) => Math.max(most, Math.abs(value)), 0);

/** Numbers as cells: blue above zero, orange below, as strong as they are large. Pointing at a cell says its number. */
function cells(numbers, { name, wide, height = 12, columns = numbers.length, scale = greatest(numbers), about = "" }) {
  const rows = Math.ceil(numbers.length / columns);
  const canvas = el("canvas", { class: "cells", role: "img", width: columns, height: rows, "data-says": "",
    "aria-label": `${name}${about ? `, ${about}` : ""}: ${[...numbers.slice(0, 8)].map(value => number(value)).join(" ")}${numbers.length > 8 ? " …" : ""}` });
  canvas.style.width = wide;
  canvas.style.height = `${height * rows}px`;
  canvas.paint = () => paintCells(canvas, numbers, scale);
  canvas.paint();
  canvas.says = event => {
    const box = canvas.getBoundingClientRect();
    const at = (size, start, length, n) => Math.min(n - 1, Math.max(0, Math.floor((size - start) / length * n)));
    const i = at(event.clientY, box.top, box.height, rows) * columns + at(event.clientX, box.left, box.width, columns);
    return i < numbers.length ? `${name}, number ${i + 1}: ${number(numbers[i], 3)}` : null;
  };
  return canvas;
}

function paintCells(canvas, numbers, scale) {
  const [above, below] = ["--weight", "--against"].map(colour => theme(colour).split(",").map(Number));
  const image = new ImageData(canvas.width, canvas.height);
  numbers.forEach((value, i) => {
    const strength = scale > 0 ? Math.min(1, Math.abs(value) / scale) ** 0.8 : 0;
    image.data.set([...(value < 0 ? below : above), 255 * strength], 4 * i);
  });
  canvas.getContext("2d").putImageData(image, 0, 0);
}

/** The legend of cells. */
const cellsLegend = scale => el("span", { class: "small muted" }, `orange −${number(scale)}, white 0, blue ${number(scale)}`);

/** How many columns show n cells in about so many rows, in even rows. */
const evenColumns = (n, rows) => Math.max(1, Math.ceil(n / rows));
