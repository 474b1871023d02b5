/** An element of a drawing. */
function svg(tag, attributes = {}) {
  const element = document.createElementNS("http://www.w3.org/2000/svg", tag);
  for (const [name, value] of Object.entries(attributes)) element.setAttribute(name, value);
  return element;
}

/** One side's tokens as buttons, each with room below for a share. `before` says before which there is a space. Kept in `units` by their places. */
function drawTokens(host, side, labels, before, units) {
  host.classList.toggle("characters", labels.length > 1 && labels.every((label, i) => isSpecial(label) || (!before[i] && [...label].length === 1)));
  host.dir = isLeftward(labels.filter(label => !isSpecial(label)).join(" ")) ? "rtl" : "ltr";
  host.replaceChildren(...labels.map((label, i) => {
    const button = el("button", { type: "button", class: isSpecial(label) ? "token special" : "token", "data-token": i + 1, title: label,
      tabindex: i ? -1 : 0 }, el("bdi", {}, bare(label)));
    const unit = el("span", { class: before[i] ? "unit" : "unit joined" }, button, el("small", { class: "share", "aria-hidden": true }));
    units.set(side[0] + i, unit);
    return unit;
  }));
}

/** The start symbol, which cannot be changed. */
function drawStart(units) {
  const unit = el("span", { class: "unit start" }, el("span", { class: "token special", title: "<s>" }, "<s>"),
    el("small", { class: "share", "aria-hidden": true }));
  units.set("t-1", unit);
  return unit;
}

/** The way from one token to another: over or under a line of text (`bow` -1 or 1), or from line to line. */
function way(from, to, bow, room) {
  const [x1, x2] = [from, to].map(box => box.left + box.width / 2);
  if (Math.abs(from.top - to.top) < from.height / 2) {
    const y = bow < 0 ? from.top : from.bottom;
    const lift = bow * Math.min(room, 16 + 0.24 * Math.abs(x1 - x2)) * 1.33;
    // A token that looks at itself has a loop.
    const side = x1 === x2 ? 9 : 0;
    return `M${x1 - side} ${y}C${x1 - 2 * side} ${y + lift} ${x2 + 2 * side} ${y + lift} ${x2 + side} ${y}`;
  }
  const [y1, y2] = from.top < to.top ? [from.bottom, to.top] : [from.top, to.bottom];
  const middle = (y1 + y2) / 2;
  return `M${x1} ${y1}C${x1} ${middle} ${x2} ${middle} ${x2} ${y2}`;
}

/** Lines between tokens, as strong as their weights, over the rows of tokens. A link is [from, to, weight, whether it is dim]. */
function drawLinks(stage, picture, units, links, bow) {
  const origin = stage.getBoundingClientRect();
  const boxes = new Map();
  const box = place => {
    if (!boxes.has(place)) {
      const { left, top, width, height } = units.get(place).getBoundingClientRect();
      const [x, y] = [left - origin.left, top - origin.top];
      boxes.set(place, { left: x, top: y, width, height, bottom: y + height });
    }
    return boxes.get(place);
  };
  picture.setAttribute("viewBox", `0 0 ${origin.width} ${origin.height}`);
  const room = parseFloat(getComputedStyle(stage).getPropertyValue("--room"));
  picture.replaceChildren(...links.filter(([from, to]) => units.has(from) && units.has(to)).map(([from, to, weight, isDim]) =>
    svg("path", { d: way(box(from), box(to), bow, room), "stroke-width": (1.5 + 10 * weight).toFixed(1),
      "stroke-opacity": ((isDim ? 0.06 : 0.2) + (isDim ? 0.5 : 0.8) * weight).toFixed(2) })));
}

/** A map as a small picture, one pixel for each cell. */
function drawMap(canvas, { n_rows, n_columns, weights }) {
  const strongest = weights.reduce((a, b) => Math.max(a, b), 0) || 1;
  const image = new ImageData(n_columns, n_rows);
  const [red, green, blue] = theme("--weight").split(",").map(Number);
  for (let i = 0; i < n_rows * n_columns; i++) image.data.set([red, green, blue, 255 * (weights[i] / strongest) ** 0.75], 4 * i);
  [canvas.width, canvas.height] = [n_columns, n_rows];
  canvas.getContext("2d").putImageData(image, 0, 0);
}

/** The maps of a view, layers down and heads across, each with a switch where the model has one. */
function drawHeads(host, answer, look, switches, { choose, toggle }) {
  const maps = answer.maps.filter(map => map.part === look.view);
  const layers = [...new Set(maps.map(map => map.layer))];
  host.hidden = maps.length < 2;
  if (host.hidden) return host.replaceChildren();
  const isAll = look.layer == null && look.head == null;
  const cell = map => {
    const name = mapName(map), isOff = look.off.includes(name);
    const words = [map.layer && `layer ${map.layer}`, map.head && `head ${map.head}`].filter(part => part).join(", ");
    const isChosen = !isAll && (look.layer == null || look.layer === map.layer) && (look.head == null || look.head === map.head);
    const canvas = el("canvas", {});
    drawMap(canvas, map);
    return el("div", { class: isOff ? "head off" : "head" },
      el("button", { type: "button", class: "map", "data-head": name, "aria-pressed": isChosen, "aria-label": words, title: words,
        onclick: () => choose(map) }, canvas),
      switches.includes(name) ? el("button", { type: "button", class: "switch", "data-switch": name,
        "aria-label": `${words}: ${isOff ? "off" : "on"}`, title: isOff ? "switch this head on" : "switch this head off", onclick: () => toggle(name) }, isOff ? "off" : "on") : null);
  };
  const row = layer => el("div", { class: "layer" },
    el("button", { type: "button", "data-layer": layer ?? "", "aria-pressed": look.layer === layer && look.head == null,
      onclick: () => choose({ layer, head: null }) }, `layer ${layer ?? 1}`),
    ...maps.filter(map => map.layer === layer).map(cell));
  const hasHeads = maps.some(map => map.head != null);
  host.replaceChildren(
    el("div", { class: "toolbar" }, el("h3", {}, hasHeads ? "Layers and heads" : "Layers"),
      el("button", { type: "button", "data-layer": "all", "aria-pressed": isAll, onclick: () => choose({ layer: null, head: null }) }, "mean of all")),
    el("div", { class: "grid" }, ...layers.map(row)));
}
