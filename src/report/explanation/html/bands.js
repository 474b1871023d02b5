// Every layer as a band of vectors under the words, with arcs of self-attention from the word that is pointed at, and lines between the
// source and the layers of the decoder that look at it.

const CHANGES = ["the factor by which the recurrence keeps what it has, a mean over its elements", data.change, "the cosine of the angle to the state before the step"];

/** The sides of the model: their words, a band for each layer, and what each looks at. */
function sides() {
  const found = [];
  const source = data.source.map(text => ({ text }));
  const bands = [];
  if (data.words.some(word => word.embedded)) bands.push({ name: isText ? "what enters" : "what the encoder reads", vectors: data.words.map(word => word.embedded) });
  for (const { layer, states } of data.layers) {
    const weights = data.reading.filter(head => head.layer === layer);
    bands.push({ name: data.layers.length > 1 || !data.mechanism.n_directions ? `layer ${layer}` : "states h", layer, vectors: states.map(state => state.vector), weights,
      kept: states.map(state => state.kept), change: states.map(state => state.changes.map(change => change.distance)) });
  }
  if (bands.length) found.push({ id: "source", title: isText ? "The beginning is read" : "The encoder reads the source", words: source, bands });
  const written = data.steps.map(step => ({ text: step.chosen.token, reads: step.previous }));
  const own = [];
  if (data.steps.some(step => step.input)) own.push({ name: "what the decoder reads", vectors: data.steps.map(step => step.input) });
  const n = Math.max(0, ...data.steps.map(step => step.layers.length));
  const looks = (heads, rows, layer) => heads.flatMap((head, i) => head.layer === layer ? [{ layer, head: head.head, rows: data.steps.map(step => step[rows][i].weights) }] : []);
  const across = layer => isText ? [] : looks(data.heads, "rows", layer);
  for (let layer = 1; layer <= n; layer++) {
    const weights = isText ? looks(data.heads, "rows", layer) : looks(data.own, "own", layer);
    own.push({ name: `layer ${layer}`, layer, vectors: data.steps.map(step => step.layers[layer - 1]), weights, isOwn: true, across: across(layer),
      kept: data.steps.map(step => step.recurrences.filter(recurrence => recurrence.layer === layer && recurrence.kept).map(recurrence => recurrence.kept[0])) });
  }
  const gates = Math.max(0, ...data.steps.map(step => step.gates?.length ?? 0));
  for (let layer = 1; layer <= gates; layer++) {
    own.push({ name: `gate${gates > 1 ? ` of layer ${layer}` : ""}: what is kept`, vectors: data.steps.map(step => step.gates[layer - 1]?.vector), isShare: true,
      kept: data.steps.map(step => step.gates[layer - 1] ? [step.gates[layer - 1].mean] : []) });
  }
  if (n === 0 && data.steps.some(step => step.state)) own.push({ name: "state s", vectors: data.steps.map(step => step.state), turned: data.steps.map(step => step.cosine), across: across(1) });
  found.push({ id: "target", title: isText ? "The text goes on" : data.mechanism.answers ? "The answers" : "The decoder reads what was written and writes the next word", words: written, bands: own });
  return found;
}

/** A token in a sentence. */
const quoted = text => `“${shownToken(text)}”`;

/** What a word of a band looks at, by the given heads of its layer: one of them, or their mean. */
function weightsAt(there, i) {
  const heads = (there ?? []).filter(head => at.head === 0 || head.head === at.head);
  const all = heads.length ? heads : there ?? [];
  return all.length ? { weights: mean(all.map(head => head.rows[i])), n: all.length } : null;
}

function drawBands() {
  const focused = document.activeElement?.closest("#bands [data-token]") ? at.token : null;
  const all = sides(), looks = all.some(side => side.bands.some(band => band.weights?.length || band.across?.length));
  $("bands").replaceChildren(...all.map(drawSide), svg("svg", { class: "across", "aria-hidden": "true" }));
  // On paper the bands are made as small as the page is wide.
  $("bands").style.setProperty("--wide", `${$("bands").scrollWidth}px`);
  $("bands").style.setProperty("--shrink", Math.min(1, 690 / $("bands").scrollWidth).toFixed(3));
  if (!at.token) $("band-says").textContent = `Point at a token, or go to it with Tab: ${looks ? "lines show what it looks at, or what looks at it" : "the norm of its vector in each band is told here"}.`;
  if (focused) document.querySelector(`[data-side="${focused.side}"] [data-token="${focused.i}"]`)?.focus({ preventScroll: true });
  drawBandArcs();
}

function drawSide(side) {
  const n = side.words.length;
  const row = (kind, label, children) => {
    const element = el("div", { class: `band ${kind}` }, el("span", { class: "layer" }, label), ...children);
    element.style.setProperty("--n", n);
    return element;
  };
  const isAt = i => at.token?.side === side.id && at.token.i === i;
  const words = row("words", "", side.words.map(({ text, reads }, i) => el("button", { type: "button", class: [isSpecial(text) && "special", isAt(i) && "at"].filter(Boolean).join(" "), "data-token": i,
    "aria-pressed": isAt(i), "data-tip": reads == null ? `word ${i + 1}` : `step ${i + 1}: after ${shownToken(reads)} comes ${shownToken(text)}`,
    onpointerenter: () => look(side.id, i), onfocus: () => look(side.id, i), onclick: () => look(side.id, i) }, shownToken(text))));
  const bands = side.bands.flatMap(band => {
    const scale = band.isShare ? 1 : Math.max(...band.vectors.map(vector => vector ? greatest(valuesOf(vector)) : 0));
    const places = band.vectors.map((vector, i) => {
      const kept = band.kept?.[i]?.length ? `keeps ${band.kept[i].map(share => number(share)).join(", ")}` : null;
      const moved = !kept && band.change?.[i]?.length ? `moved ${band.change[i].map(distance => number(distance, 1)).join(", ")}` : null;
      const turned = band.turned?.[i] == null ? null : `cos ${number(band.turned[i])}`;
      const numbers = vector ? valuesOf(vector) : [];
      return el("div", { class: isAt(i) ? "place at" : "place", onpointerenter: () => look(side.id, i) },
        vector ? cells(numbers, { name: `${band.name} at ${shownToken(side.words[i].text)}`, wide: "100%", height: 9, columns: evenColumns(numbers.length, 4), scale, about: `norm ${number(vector.norm)}` }) : "",
        kept || moved || turned ? el("span", { class: "small muted", "data-tip": CHANGES[kept ? 0 : moved ? 1 : 2] }, kept ?? moved ?? turned) : null);
    });
    const line = row("vectors", band.name, places);
    line.band = band;
    if (!band.weights?.length) return [line];
    const arcs = row("arcs", "", []);
    arcs.append(svg("svg", { "aria-hidden": "true" }));
    Object.assign(arcs, { band, side });
    return [arcs, line];
  });
  const box = el("div", { class: "side", "data-side": side.id }, el("h3", {}, side.title), words, ...bands);
  // Words fit, at twenty pixels a letter of two thirds of that; very long ones are broken.
  const longest = Math.max(...side.words.map(({ text }) => [...shownToken(text)].length));
  box.style.setProperty("--least", `${Math.min(170, Math.max(48, (isWall() ? 14 : 11) * longest + 6))}px`);
  return box;
}

/** Arcs over each band from the word that is pointed at. */
function drawBandArcs() {
  const says = [];
  let n = 1;
  for (const arcs of document.querySelectorAll(".band.arcs")) {
    const { band, side } = arcs, picture = arcs.querySelector("svg");
    picture.replaceChildren();
    if (at.token?.side !== side.id) continue;
    const found = weightsAt(band.weights, at.token.i);
    if (!found) continue;
    const words = [...arcs.parentNode.querySelectorAll(".words button")], left = arcs.getBoundingClientRect().left;
    const middle = i => { const box = words[i].getBoundingClientRect(); return box.left - left + box.width / 2; };
    // The target's words look at what was read before them: the word before the first is not in the row.
    const shift = band.isOwn ? (isText ? data.source.length : 1) : 0, from = middle(at.token.i);
    const strongest = found.weights.reduce((best, weight, i) => weight > found.weights[best] ? i : best, 0);
    found.weights.forEach((weight, i) => {
      const place = i - shift;
      if (weight < 0.01 || place < 0 || !words[place]) return;
      const to = middle(place), height = 42, lift = Math.min(height * 1.25, 12 + 0.25 * Math.abs(to - from));
      const d = place === at.token.i ? `M${from - 8} ${height}C${from - 16} ${height - 30} ${from + 16} ${height - 30} ${from + 8} ${height}` : `M${from} ${height}C${from} ${height - lift} ${to} ${height - lift} ${to} ${height}`;
      picture.append(svg("path", { d, "stroke-width": (1 + 9 * weight).toFixed(1), "stroke-opacity": (0.3 + 0.7 * weight).toFixed(2) }));
    });
    const name = band.isOwn ? (isText ? inSight(at.token.i) : [data.steps[0].previous, ...data.target])[strongest] : data.source[strongest];
    says.push(`layer ${band.layer}: ${quoted(name ?? "")} ${number(found.weights[strongest])}`);
    n = found.n;
  }
  const seen = drawAcross();
  if (at.token) {
    const side = sides().find(side => side.id === at.token.side), word = side?.words[at.token.i];
    const norms = word ? side.bands.map(band => band.vectors[at.token.i] ? `${band.name} ${number(band.vectors[at.token.i].norm)}` : "").filter(Boolean).join(", ") : "";
    if (word) $("band-says").textContent = says.length ? `${quoted(word.text)} looks most at: ${says.join("; ")} (${n > 1 ? `the mean of ${n} heads` : "one head"}).${seen}` : `${quoted(word.text)}${norms ? `: norms ${norms}` : " has no vector of its own: it is read off a state of the source"}.${seen}`;
  }
}

/**
 * Lines between the two sides: from a word of the target, what each layer looks at in the source; from a word of the source, which steps
 * look at it. Says it in a sentence.
 */
function drawAcross() {
  const picture = document.querySelector("#bands > .across"), host = $("bands"), ground = host.getBoundingClientRect();
  picture.replaceChildren();
  const read = document.querySelector('.side[data-side="source"]');
  if (!at.token || !read) return "";
  const box = element => {
    const { left, top, bottom, width } = element.getBoundingClientRect();
    return { x: left - ground.left + host.scrollLeft + width / 2, top: top - ground.top, bottom: bottom - ground.top };
  };
  const states = [...[...read.querySelectorAll(".band.vectors")].at(-1).querySelectorAll(".place")].map(box);
  const isTarget = at.token.side === "target", says = [];
  for (const line of document.querySelectorAll('.side[data-side="target"] .band.vectors')) {
    const { band } = line, steps = [...line.querySelectorAll(".place")];
    if (!band.across?.length) continue;
    const pairs = isTarget ? weightsAt(band.across, at.token.i).weights.map((weight, i) => ({ weight, i, t: at.token.i, name: data.source[i] }))
      : data.steps.map((step, t) => ({ weight: weightsAt(band.across, t).weights[at.token.i], i: at.token.i, t, name: step.chosen.token }));
    for (const { weight, i, t } of pairs) {
      if (weight < 0.05 || !states[i]) continue;
      const from = states[i], to = box(steps[t]), bend = (to.top - from.bottom) / 2;
      picture.append(svg("path", { d: `M${from.x} ${from.bottom}C${from.x} ${from.bottom + bend} ${to.x} ${to.top - bend} ${to.x} ${to.top}`, "stroke-width": (1 + 5 * weight).toFixed(1), "stroke-opacity": (0.15 + 0.6 * weight).toFixed(2) }));
    }
    const best = pairs.reduce((best, pair) => pair.weight > best.weight ? pair : best);
    says.push(`${band.layer ? `layer ${band.layer}: ` : ""}${quoted(best.name)} ${number(best.weight)}`);
  }
  if (!says.length) return "";
  return isTarget ? ` In the source: ${says.join("; ")}.` : ` Looked at most while this was written: ${says.join("; ")}.`;
}

function look(side, i) {
  if (at.token?.side === side && at.token.i === i) return;
  at.token = { side, i };
  for (const box of document.querySelectorAll(".side")) {
    box.querySelectorAll(".words button").forEach((button, k) => { const isAt = box.dataset.side === side && k === i; button.classList.toggle("at", isAt); button.setAttribute("aria-pressed", isAt); });
    for (const band of box.querySelectorAll(".band.vectors")) [...band.querySelectorAll(".place")].forEach((place, k) => place.classList.toggle("at", box.dataset.side === side && k === i));
  }
  drawBandArcs();
}

/** The formulas of the encoder and the numbers of every state. */
function drawStates() {
  $("encoder-formula").replaceChildren(...data.mechanism.encoder.map(line => el("li", {}, formula(line.text, 1), " ", el("span", { class: "muted" }, line.meaning))));
  $("change-meaning").textContent = data.change;
  const tables = data.layers.map(layer => {
    const first = layer.states[0], names = first.changes.length === 2 ? ["#change, forwards", "", "#change, backwards", ""] : ["#change", ""];
    const most = Math.max(...layer.states.flatMap(state => state.changes.map(change => change.distance))) || 1;
    const kept = first.kept.length === 2 ? ["#kept", "#kept, backwards"] : ["#kept"].slice(0, first.kept.length);
    const row = state => ({ cells: [token(state.token), cells(valuesOf(state.vector), { name: `layer ${layer.layer} at ${shownToken(state.token)}`, wide: "100%" }), number(state.vector.norm), ...state.kept.map(share => number(share)),
      ...state.changes.flatMap(change => [`${number(change.distance)}${change.cosine == null ? "" : `, cos ${number(change.cosine)}`}`, bar(change.distance / most)])] });
    return [el("h3", {}, `layer ${layer.layer}`), el("div", { class: "scroll" }, el("table", {}, ...table(["token", `first of ${first.vector.width} values`, "#norm", ...kept, ...names], layer.states.map(row))))];
  });
  $("state-tables").replaceChildren(...tables.flat());
  if (!data.context) return;
  const mostShare = Math.max(...data.shares) || 1;
  const shares = data.source.map((name, i) => ({ cells: [token(name), percent(data.shares[i]), bar(data.shares[i] / mostShare)] }));
  const isNothing = data.shares.every(share => share === 0);
  $("context").replaceChildren(vectorBlock("c", data.context), el("p", {}, data.mechanism.context_use),
    el("p", {}, isNothing ? "No measurable influence of the source on any step." : "What depends on it: the share of each token in gradient × input of the written words' log-odds, over all steps."),
    ...(isNothing ? [] : [el("div", { class: "scroll" }, el("table", {}, ...table(["source", "#share", ""], shares)))]));
}

function drawWords() {
  const row = word => ({ cells: [token(word.token), cells(valuesOf(word.vector), { name: shownToken(word.token), wide: "100%", height: 22, about: `norm ${number(word.vector.norm)}` }), number(word.vector.norm),
    el("span", {}, ...word.near.flatMap(([name, cosine]) => [el("span", { class: "pair" }, token(name), ` ${number(cosine)}`), "  "]))] });
  const [first] = data.words, n = first ? valuesOf(first.vector).length : 0;
  const title = !first ? "values" : n < first.vector.width ? `the first ${n} of ${first.vector.width} values` : `${n} values`;
  $("word-table").replaceChildren(...table(["token", title, "#norm", "nearest in the vocabulary, by cosine"], data.words.map(row)));
}

/** What the view of words or layers shows, as rows of a table. */
function vectorRows() {
  if (at.view === "words") return [["token", "norm", "values"], ...data.words.map(word => [word.token, word.vector.norm, ...valuesOf(word.vector)])];
  return [["side", "band", "token", "norm", "values"], ...sides().flatMap(side => side.bands.flatMap(band => band.vectors.flatMap((vector, i) => vector ? [[side.id, band.name, side.words[i].text, vector.norm, ...valuesOf(vector)]] : [])))];
}
