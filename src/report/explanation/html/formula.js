/** An element of a drawing. */
function svg(tag, attributes = {}, text) {
  const element = document.createElementNS("http://www.w3.org/2000/svg", tag);
  for (const [name, value] of Object.entries(attributes)) element.setAttribute(name, value);
  if (text != null) element.textContent = text;
  return element;
}

/** A formula at a step, its indices lowered: "e_ti" becomes e with a small 3i. */
function formula(text, step) {
  const filled = text.replaceAll("_(t-1)", `_${step - 1}`)
    .replaceAll(/(?<=_)t(?=[ij](?!\p{L}))|(?<!\p{L})t(?!\p{L})/gu, String(step))
    .replaceAll("sum_", "Σ_").replaceAll("sqrt(", "√(").replaceAll("<=", "≤").replaceAll(" . ", " · ").replaceAll("s~", "s̃");
  const span = el("span", { class: "formula" });
  let end = 0;
  for (const match of filled.matchAll(/([_^])(?:\(([^)]*)\)|([\p{L}\p{N}']+))/gu)) {
    span.append(filled.slice(end, match.index), el(match[1] === "_" ? "sub" : "sup", {}, match[2] ?? match[3]));
    end = match.index + match[0].length;
  }
  span.append(filled.slice(end));
  return span;
}

/** What a formula makes, such as z_3 of "z_t = ...". */
const madeBy = text => text.split(" = ")[0].replaceAll("_t", `_${at.step + 1}`);

/** A bar as long as its share of the room; below the line it has the other colour. */
function bar(share, isAgainst) {
  const size = Math.min(1, Math.max(0, share));
  const element = el("span", { class: ["bar", isAgainst && "against", size === 0 && "none"].filter(Boolean).join(" ") });
  element.style.width = `${(100 * size).toFixed(1)}%`;
  return element;
}

/** Whether the numbers of vectors are unfolded: the next step shows them, too. */
let areNumbersOpen = false;

/** A vector as cells under its name, with its width and length; its numbers can be unfolded. */
function vectorBlock(name, vector, { rows = 2, height = 18, about = "", isBare = false } = {}) {
  const numbers = valuesOf(vector), some = numbers.length < vector.width ? `the first ${numbers.length} of ${vector.width}` : `${vector.width}`;
  const scale = greatest(numbers);
  const picture = cells(numbers, { name, wide: "100%", height, columns: evenColumns(numbers.length, rows), scale, about: `${some} numbers, norm ${number(vector.norm)}` });
  if (isBare) return el("div", { class: "vector" }, picture);
  const words = `${some} numbers, norm ${number(vector.norm)}${about ? `, ${about}` : ""}`;
  return el("div", { class: "vector" }, el("p", {}, formula(name, 0), " ", el("span", { class: "small muted" }, words)), picture,
    el("p", { class: "legend" }, cellsLegend(scale)),
    el("details", { open: areNumbersOpen, ontoggle: event => { areNumbersOpen = event.target.open; } }, el("summary", {}, "numbers"), el("p", { class: "values" }, [...numbers].map(value => number(value, 3)).join("  ") + (numbers.length < vector.width ? " …" : ""))));
}
