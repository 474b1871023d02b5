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

const number = (value, digits = 2) => (Math.abs(value) < 0.5 * 10 ** -digits ? 0 : value).toFixed(digits);
const percent = p => p >= 0.9995 ? "100 %" : p >= 0.0995 ? `${(100 * p).toFixed(0)} %` : p >= 0.001 ? `${(100 * p).toFixed(1)} %` : "< 0.1 %";
const token = text => el("span", { class: "token" }, text);

/** The first values of a vector. */
function values(numbers, n = numbers.length, more = true) {
  return el("span", { class: "values" }, numbers.slice(0, n).map(value => number(value).padStart(6)).join(" ") + (more ? " …" : ""));
}

/** A vector with its name, width and length. */
function vector(name, vector, remark) {
  const more = vector.width > Math.min(5, vector.first.length);
  return el("p", {}, formula(name, 0), " = ", values(vector.first, 5, more), " ",
    el("span", { class: "muted" }, `${vector.width} numbers, norm ${number(vector.norm)}${remark ? `, ${remark}` : ""}`));
}

function bar(share, isWarm) {
  const width = `${(100 * Math.min(1, Math.max(0, share))).toFixed(1)}%`;
  const element = el("span", { class: isWarm ? "bar warm" : "bar" });
  element.style.width = width;
  return element;
}

/** A table from names of columns and rows of cells; names that begin with # stand over numbers. */
function table(names, rows) {
  const kind = i => names[i].startsWith("#") ? "number" : names[i] === "" ? "bars" : null;
  const head = el("tr", {}, ...names.map((name, i) => el("th", { class: kind(i) }, name.replace("#", ""))));
  const body = rows.map(row => el("tr", { class: row.class }, ...row.cells.map((cell, i) => el("td", { class: kind(i) }, cell))));
  return [el("thead", {}, head), el("tbody", {}, ...body)];
}

/** What can be looked at on the left, target on the right, and a line for every weight, as wide as it is. */
function drawLinks(picture, rows, current, choose) {
  const width = Math.max(200, picture.clientWidth || 300);
  const gap = 24;
  const seen = inSight(data.target.length - 1);
  const height = gap * Math.max(seen.length, data.target.length) + 8;
  const left = Math.round(width * 0.4), right = Math.round(width * 0.6);
  const cut = text => [...text].length * 8 > left - 8 ? [...text].slice(0, Math.floor((left - 16) / 8)).join("") + "…" : text;
  const y = i => gap * i + gap * 0.72;
  picture.replaceChildren();
  picture.setAttribute("viewBox", `0 0 ${width} ${height}`);
  picture.setAttribute("height", height);
  rows.forEach((weights, t) => {
    const isNow = t === current;
    weights.forEach((weight, i) => {
      const size = Math.abs(weight);
      if (size < (isNow ? 0.005 : 0.1)) return;
      picture.append(svg("line", { x1: left, y1: y(i) - 4, x2: right, y2: y(t) - 4, class: weight < 0 ? "against" : "for",
        "stroke-width": (0.5 + 9 * size).toFixed(1), "stroke-opacity": isNow ? (0.3 + 0.7 * size).toFixed(2) : 0.13 }));
    });
  });
  seen.forEach((name, i) => {
    const isSeen = Math.abs(rows[current]?.[i] ?? 0) > 0.1;
    picture.append(svg("text", { x: left - 8, y: y(i), "text-anchor": "end", class: isSeen ? "now" : "" }, cut(name)));
  });
  data.target.forEach((name, t) => {
    const text = svg("text", { x: right + 8, y: y(t), class: t === current ? "target now" : "target" }, cut(name));
    text.addEventListener("click", () => choose(t));
    picture.append(text);
  });
  return y(current);
}
