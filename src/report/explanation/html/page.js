const $ = id => document.getElementById(id);
const lines = data.mechanism.formulas;
/** A language model has no source: a step looks at the text before it. */
const isText = data.mechanism.is_text === true;
const inSight = step => isText ? [...data.source, ...data.target.slice(0, step)] : data.source;
const isOwn = line => line?.part === "self-attention" && !isText;
const sight = isText ? "text so far" : "source";
const hasAttention = data.heads.length > 0;
const hasHeads = data.heads.length > 1;
const layers = [...new Set(data.heads.map(head => head.layer))];
const headNumbers = [...new Set(data.heads.map(head => head.head))];
// Layer 0 and head 0 stand for the mean.
const at = {
  step: Math.max(0, (data.at.step ?? 1) - 1),
  line: Math.max(0, lines.findIndex(line => isText && !hasAttention ? line.makes === "output" : line.makes === "weights" && !isOwn(line))),
  layer: hasHeads ? data.at.layer ?? 0 : 1,
  head: hasHeads ? data.at.head ?? 0 : 1,
  view: "steps",
};

/** The mean of several rows of weights. */
function mean(rows) {
  return rows[0].map((_, i) => rows.reduce((sum, row) => sum + row[i], 0) / rows.length);
}

/** The attention that a line belongs to: its heads, its rows at a step, and the tokens that it attends to. */
function attentionOf(line, step) {
  if (!isOwn(line)) return { heads: data.heads, rows: step.rows, tokens: inSight(at.step) };
  return { heads: data.own, rows: step.own, tokens: [data.steps[0].previous, ...data.target].slice(0, at.step + 1) };
}

/** Which rows of a step are meant: one head, or the mean of several. */
function chosenRows(step, line) {
  const { heads, rows } = attentionOf(line, step);
  return rows.filter((_, i) => (at.layer === 0 || heads[i].layer === at.layer) && (at.head === 0 || heads[i].head === at.head));
}

/** What links source and target at a step: weights, or shares of the influence where there is no attention. */
function linkWeights(step) {
  if (hasAttention) return mean(chosenRows(step).map(row => row.weights));
  const sum = step.influence.reduce((sum, value) => sum + Math.abs(value), 0) || 1;
  return step.influence.map(value => value / sum);
}

function drawSentence(step) {
  const parts = [`Step ${at.step + 1} of ${data.steps.length}: the ${data.mechanism.answers ? "answer for" : "word after"} `, token(step.previous), " is ", token(step.chosen.token),
    ` with ${percent(step.chosen.p)}`];
  if (!step.agrees) {
    parts.push(el("span", { class: "warm" }, `; the model would rather have "${step.preferred.token}" (${percent(step.preferred.p)})`));
  }
  $("sentence").replaceChildren(...parts);
}

function drawFormulas() {
  const item = (line, i) => el("li", { "aria-current": String(i === at.line), onclick: () => { at.line = i; drawStep(); } },
    formula(line.text, at.step + 1), el("span", { class: "muted" }, line.meaning));
  $("formulas").replaceChildren(...lines.map(item));
}

/** Scores, weights, weighted values. */
function attentionTable(step, rows, what, line) {
  const one = rows.length === 1 ? rows[0] : null;
  const weights = mean(rows.map(row => row.weights));
  const attention = attentionOf(line, step);
  const head = one && attention.heads[attention.rows.indexOf(one)];
  const isSource = !isOwn(line);
  const names = [isSource ? sight : "target so far"];
  if (one) names.push("#score");
  if (what !== "score") names.push("#weight", "");
  if (what === "context" && one) names.push("weight × value");
  if (what === "context" && isSource) names.push("#grad × input");
  const body = attention.tokens.map((name, i) => {
    const isOutside = one?.window && (i + 1 < one.window[0] || i + 1 > one.window[1]);
    const cells = [token(name)];
    if (one) cells.push(isOutside ? "outside" : number(one.scores[i], 3));
    if (what !== "score") cells.push(number(weights[i], 3), bar(weights[i]));
    if (what === "context" && one) cells.push(values((head.values?.[i] ?? []).map(value => value * weights[i]), 3));
    if (what === "context" && isSource) cells.push(number(step.influence[i]));
    return { cells, class: isOutside ? "outside" : null };
  });
  if (what !== "score") {
    const sum = number(weights.reduce((a, b) => a + b, 0), 3);
    const cells = [el("span", { class: "muted" }, "sum"), ...(one ? [""] : []), sum, ""];
    if (what === "context" && one) cells.push(values(one.context.first, 3));
    if (what === "context" && isSource) cells.push("");
    body.push({ cells });
  }
  return el("table", {}, ...table(names, body));
}

/** What gradient × input is measured of. */
function influenceMeaning(step) {
  return el("p", { class: "muted" }, "grad × input: by how much the log-odds of ", token(step.chosen.token), " against ", token(step.contrast),
    ` would fall, in nats, if the model did not know the ${isText ? "" : "source "}token (to first order)`);
}

function influenceTable(step) {
  const most = Math.max(...step.influence.map(Math.abs)) || 1;
  const body = inSight(at.step).map((name, i) => ({ cells: [token(name), number(step.influence[i], 3),
    bar(Math.abs(step.influence[i]) < 0.0005 ? 0 : Math.abs(step.influence[i]) / most, step.influence[i] < 0)] }));
  return el("table", {}, ...table([sight, "#grad × input", ""], body));
}

/** What the recurrence of each layer keeps. */
function recurrenceTable(step) {
  const hasReplaced = step.recurrences.some(layer => layer.replaced);
  const cells = range => range ? range.map(value => number(value, 3)) : ["–", "–", "–"];
  const rows = step.recurrences.map(({ layer, kept, replaced, state }) => ({ cells: [String(layer), ...cells(kept), bar(kept ? kept[0] : 0),
    ...(hasReplaced ? [cells(replaced)[0]] : []), number(state.norm), values(state.first, 3, state.width > 3)] }));
  return el("table", {}, ...table(["#layer", "#kept", "#least", "#most", "", ...(hasReplaced ? ["#replaced"] : []), "#norm", "state"], rows));
}

function outputTable(step) {
  const choices = step.top.some(choice => choice.token === step.chosen.token) ? step.top : [...step.top, step.chosen];
  const body = choices.map(choice => {
    const isChosen = choice.token === step.chosen.token;
    const cell = token(choice.token);
    if (isChosen) cell.classList.add("chosen");
    return { cells: [cell, percent(choice.p), bar(choice.p), isChosen ? (data.forced ? "given" : "chosen") : ""] };
  });
  return el("table", {}, ...table(["next word", "#p", "", " "], body));
}

/** The numbers that one line of the computation makes. */
function numbersOf(line, step) {
  const rows = chosenRows(step, line);
  const one = rows.length === 1 ? rows[0] : null;
  const n = at.step + 1;
  switch (line.makes) {
    case "query": return one ? [vector(`q_${n}`, one.query)] : [];
    case "window": return one?.window ? [el("p", {}, formula(`p_${n}`, n), ` = ${number(one.center)}: positions ${one.window[0]} to ${one.window[1]}`)] : [];
    case "score": return one ? [attentionTable(step, rows, "score", line)] : [el("p", { class: "muted" }, "choose a layer and a head to see its scores")];
    case "weights": return [attentionTable(step, rows, "weights", line)];
    case "context":
      if (!hasAttention) return [...(data.context ? [vector("c", data.context)] : []), influenceTable(step), influenceMeaning(step)];
      return [attentionTable(step, rows, "context", line), ...(isOwn(line) ? [] : [influenceMeaning(step)]), ...(one ? [vector(line.text.split(" = ")[0].replaceAll("_t", `_${n}`), one.context)] : [])];
    case "state": {
      const remark = step.cosine == null ? null : `cosine to the state before ${number(step.cosine)}`;
      return [...(step.before ? [vector(`s_${n - 1}`, step.before)] : []), vector(step.layers ? `x_${n}^${step.layers}` : `s_${n}`, step.state, remark)];
    }
    case "residual": return line.part === "model" && step.recurrences.length ? [recurrenceTable(step), el("p", { class: "muted" },
      "kept: the factor of the old state, as a mean over its elements, the least and the most; state: what the layer shows of it")] : [];
    case "output": return [outputTable(step), ...(hasAttention || lines.some(other => other.makes === "context") || !step.influence.length ? []
      : [influenceTable(step), influenceMeaning(step)])];
    default: return [];
  }
}

function drawNumbers(step) {
  // One table at a time: scores, weights and weighted values are columns of the same one, which grows line by line.
  const tables = ["score", "weights", "context"];
  const current = lines[at.line];
  const shown = hasAttention && tables.includes(current.makes) ? current.makes : "weights";
  const part = isText || current.part === "self-attention" ? "self-attention" : "cross-attention";
  const sections = lines.map((line, i) => {
    if (hasAttention && tables.includes(line.makes) && (line.makes !== shown || line.part !== part)) return null;
    return el("section", { class: i === at.line ? "current" : null }, formula(line.text, at.step + 1), ...numbersOf(line, step));
  });
  $("numbers").replaceChildren(...sections.filter(section => section));
  const section = $("numbers").querySelector(".current");
  if (section) $("numbers").scrollTop = Math.max(0, section.offsetTop - $("numbers").offsetTop - 8);
}

function drawStep() {
  const step = data.steps[at.step];
  if (!step) return;
  $("slider").value = at.step + 1;
  if (hasHeads) [$("layer").value, $("head").value] = [at.layer, at.head];
  drawSentence(step);
  drawFormulas();
  const rows = data.steps.map((other, t) => t === at.step || $("all").checked ? linkWeights(other) : []);
  const panel = $("links");
  const height = drawLinks(panel.querySelector("svg"), rows, at.step, t => { at.step = t; drawStep(); });
  if (panel.scrollHeight > panel.clientHeight) panel.scrollTop = height - panel.clientHeight / 2;
  drawNumbers(step);
}

function drawWords() {
  const row = word => ({ cells: [token(word.token), values(word.vector.first, 5), number(word.vector.norm),
    el("span", {}, ...word.near.flatMap(([name, cosine]) => [token(name), ` ${number(cosine)}  `]))] });
  const width = data.words[0]?.vector.width;
  $("word-table").replaceChildren(...table(["token", `first of ${width} values`, "#norm", "nearest in the vocabulary, by cosine"], data.words.map(row)));
}

function drawEncoder() {
  const layer = data.layers.find(layer => layer.layer === Number($("encoder-layer").value));
  $("encoder-formula").replaceChildren(...data.mechanism.encoder.map(line =>
    el("li", {}, formula(line.text, 1), " ", el("span", { class: "muted" }, line.meaning))));
  $("change-meaning").textContent = data.change;
  if (!layer) return;
  const n = layer.states[0].changes.length;
  const names = n === 2 ? ["#change, forwards", "", "#change, backwards", ""] : ["#change", ""];
  const most = Math.max(...layer.states.flatMap(state => state.changes.map(change => change.distance))) || 1;
  const kept = layer.states[0].kept.length === 2 ? ["#kept", "#kept, backwards"] : ["#kept"].slice(0, layer.states[0].kept.length);
  const row = state => ({ cells: [token(state.token), values(state.vector.first, 4), number(state.vector.norm), ...state.kept.map(share => number(share)),
    ...state.changes.flatMap(change => [`${number(change.distance)}${change.cosine == null ? "" : `, cos ${number(change.cosine)}`}`, bar(change.distance / most)])] });
  $("state-table").replaceChildren(...table(["token", "first values", "#norm", ...kept, ...names], layer.states.map(row)));
  if (data.context) {
    const largest = Math.max(...data.shares) || 1;
    const rows = data.source.map((name, i) => ({ cells: [token(name), percent(data.shares[i]), bar(data.shares[i] < 0.0005 ? 0 : data.shares[i] / largest)] }));
    $("context").replaceChildren(vector("c", data.context),
      el("p", {}, data.mechanism.context_use),
      el("p", {}, "What depends on it: the share of each token in gradient × input of the written words' log-odds, over all steps."),
      el("div", { class: "panel" }, el("table", {}, ...table(["source", "#share", ""], rows))));
  }
}

function show(view) {
  at.view = view;
  for (const section of document.querySelectorAll(".view")) section.hidden = section.id !== view;
  for (const button of document.querySelectorAll("[data-view]")) button.setAttribute("aria-pressed", String(button.dataset.view === view));
  if (view === "steps") drawStep();
}

if (isText) {
  document.querySelector("[data-view=encoder]").textContent = "2 Beginning";
  document.querySelector("#encoder h2").textContent = "The beginning is read";
}
const move = by => { at.step = Math.min(data.steps.length - 1, Math.max(0, at.step + by)); drawStep(); };
const moveLine = by => { at.line = (at.line + by + lines.length) % lines.length; drawStep(); };
const cycle = (name, numbers, by) => {
  if (!hasHeads) return;
  const all = [0, ...numbers];
  at[name] = all[(all.indexOf(at[name]) + by + all.length) % all.length];
  drawStep();
};

function options(select, numbers) {
  select.replaceChildren(el("option", { value: 0 }, "mean"), ...numbers.map(n => el("option", { value: n }, String(n))));
}

$("model").textContent = data.model;
$("notes").replaceChildren(...data.notes.map(note => el("p", { class: "warm" }, note)));
$("slider").max = Math.max(1, data.steps.length);
options($("layer"), layers);
options($("head"), headNumbers);
for (const id of ["layer-label", "head-label", "head-keys"]) $(id).hidden = !hasHeads;
for (const id of ["layer-label", "head-label"]) $(id).style.display = hasHeads ? "" : "none";
$("encoder-layer").replaceChildren(...data.layers.map(layer => el("option", { value: layer.layer }, String(layer.layer))));
$("encoder-layer").value = data.layers.length;
$("encoder-layer-label").style.display = data.layers.length > 1 ? "" : "none";
$("encoder-layer").addEventListener("change", drawEncoder);
$("previous").addEventListener("click", () => move(-1));
$("next").addEventListener("click", () => move(1));
$("slider").addEventListener("input", () => { at.step = Number($("slider").value) - 1; drawStep(); });
for (const name of ["layer", "head"]) $(name).addEventListener("change", () => { at[name] = Number($(name).value); drawStep(); });
$("all").addEventListener("change", drawStep);
for (const button of document.querySelectorAll("[data-view]")) button.addEventListener("click", () => show(button.dataset.view));
// The slider moves by itself with the arrow keys; everything else is here.
keys({
  ArrowRight: () => move(1), ArrowLeft: () => move(-1), Home: () => move(-data.steps.length), End: () => move(data.steps.length),
  ArrowDown: () => moveLine(1), ArrowUp: () => moveLine(-1),
  l: () => cycle("layer", layers, 1), L: () => cycle("layer", layers, -1),
  h: () => cycle("head", headNumbers, 1), H: () => cycle("head", headNumbers, -1),
  1: () => show("words"), 2: () => show("encoder"), 3: () => show("steps"),
});
drawWords();
drawEncoder();
show("steps");
redraw(() => { if (at.view === "steps") drawStep(); });
