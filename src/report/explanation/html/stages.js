// The stages of a step: which lines of the computation each has, and what it shows when it is looked at.

/** Lines by stage. Those of the model stand before or after the attention that is looked at. */
function stages() {
  const part = isText || isOwn() ? "self-attention" : "cross-attention";
  const own = lines.filter(line => line.part === "model" || line.part === part);
  const first = own.findIndex(line => line.part === part);
  const groups = hasAttention && first >= 0 ? [
    ["query", "query", line => line.makes === "query" || isBefore(line)],
    ["scores", "scores", line => ["memory", "window", "score"].includes(line.makes) && line.part === part],
    ["weights", "softmax", line => line.makes === "weights"],
    ["sum", "weighted sum", line => line.makes === "context" || (line.makes === "residual" && line.part === part)],
    ["next", "next words", () => true],
  ] : [
    ["word", "word in", line => ["start", "input"].includes(line.makes)],
    ["context", "what it sees", line => line.makes === "context"],
    ["state", "state", line => !["readout", "attentional", "transform", "output"].includes(line.makes)],
    ["next", "next words", () => true],
  ];
  function isBefore(line) { return line.part === "model" && own.indexOf(line) < first; }
  const taken = new Set();
  const found = groups.map(([id, name, fits]) => {
    const its = own.filter(line => !taken.has(line) && fits(line));
    its.forEach(line => taken.add(line));
    return { id, name, lines: its };
  });
  return found.filter(stage => stage.lines.length > 0);
}

/** What a stage shows of a mean, which has no query and no scores of its own. */
function ofMean(what) {
  const n = chosenHeads().length, [first] = chosenHeads(), { layer, head } = headsOf(at.part)[first];
  return [el("p", {}, `This is ${headsInWords()}. Each of the ${n} has ${what} of its own. `),
    el("button", { type: "button", class: "controls", onclick: () => go({ layer, head }) }, `show layer ${layer}, head ${head}`)];
}

/** Scores, weights and weighted values of what is looked at: a table that grows stage by stage. */
function attentionTable(step, what) {
  const one = oneHead(step), weights = linkWeights(step), isSum = what === "sum", showsInfluence = isSum && !isOwn();
  const scoreScale = one ? greatest(one.scores) || 1 : 1;
  const names = [isOwn() ? "target so far" : sight];
  if (one) names.push("#score");
  names.push(...(what === "scores" ? [""] : ["#weight", " "]));
  if (isSum && one) names.push("weight × value");
  if (showsInfluence) names.push("#grad × input", "  ");
  const products = isSum && one && one.values ? one.values.map((packed, i) => unpackedOnce(one.values, i).map(value => value * weights[i])) : null;
  const productScale = products ? products.reduce((most, row) => Math.max(most, greatest(row)), 0) : 0;
  const rows = looked(at.step).map((name, i) => {
    const isOutside = one?.window && (i + 1 < one.window[0] || i + 1 > one.window[1]);
    const row = [token(name)];
    if (one) row.push(isOutside ? "outside" : number(one.scores[i], 3));
    if (what === "scores") row.push(isOutside ? "" : bar(Math.abs(one.scores[i]) / scoreScale, one.scores[i] < 0));
    else row.push(number(weights[i], 3), bar(weights[i] < 0.0005 ? 0 : weights[i]));
    if (isSum && one) row.push(products?.[i] ? cells(products[i], { name: `weight × value of ${shownToken(name)}`, wide: "100%", scale: productScale }) : "");
    if (showsInfluence) row.push(number(step.influence[i]), influenceBar(step.influence[i]));
    return { cells: row, class: isOutside ? "outside" : null };
  });
  if (what !== "scores") {
    const row = [el("b", {}, "sum"), ...(one ? [""] : []), number(weights.reduce((a, b) => a + b, 0), 3), ""];
    if (isSum && one) row.push(cells(valuesOf(one.context), { name: "the weighted sum", wide: "100%", scale: productScale }));
    if (showsInfluence) row.push("", "");
    rows.push({ cells: row, class: "sum" });
  }
  return el("div", { class: "scroll" }, el("table", { class: "numbers" }, ...table(names, rows)));
}

/** Values of a head, unpacked once. */
const kept = new WeakMap();
function unpackedOnce(all, i) {
  if (!kept.has(all)) kept.set(all, []);
  return kept.get(all)[i] ??= floatsOf(all[i]);
}

const influenceBar = value => bar(Math.abs(value) < 0.0005 ? 0 : Math.abs(value) / influenceScale, value < 0);

/** What gradient × input is measured of, and how long its bars are. */
function influenceMeaning(step) {
  const nothing = step.influence.length > 0 && !measured(step);
  return el("p", { class: "muted" }, nothing ? `No measurable influence of the ${sight}. ` : "", "grad × input: by how much the log-odds of ", token(step.chosen.token), " against ", token(step.contrast),
    ` would fall, in nats, if the model did not know the ${isText ? "" : "source "}token (to first order: a large change may differ, even in its sign). A full bar is ${number(influenceScale, 1)} nats at every step.`);
}

function influenceTable(step) {
  const rows = inSight(at.step).map((name, i) => ({ cells: [token(name), number(step.influence[i], 3), influenceBar(step.influence[i])] }));
  return el("div", { class: "scroll" }, el("table", {}, ...table([sight, "#grad × input", ""], rows)));
}

/** What the recurrence of each layer keeps. */
function recurrenceTable(step) {
  const hasReplaced = step.recurrences.some(layer => layer.replaced);
  const three = range => range ? range.map(value => number(value, 3)) : ["–", "–", "–"];
  const rows = step.recurrences.map(({ layer, kept, replaced, state }) => ({ cells: [String(layer), ...three(kept), bar(kept ? kept[0] : 0),
    ...(hasReplaced ? [three(replaced)[0]] : []), number(state.norm), cells(valuesOf(state), { name: `the state of layer ${layer}`, wide: "100%" })] }));
  return [el("div", { class: "scroll" }, el("table", {}, ...table(["#layer", "#kept", "#least", "#most", "", ...(hasReplaced ? ["#replaced"] : []), "#norm", "state"], rows))),
    el("p", { class: "muted" }, "kept: the factor of the old state, as a mean over its elements, the least and the most; state: what the layer shows of it")];
}

function outputTable(step) {
  const all = step.top.some(choice => choice.token === step.chosen.token) ? step.top : [...step.top, step.chosen];
  const rows = all.map(choice => {
    const isChosen = choice.token === step.chosen.token, name = token(choice.token);
    if (isChosen) name.classList.add("chosen");
    return { cells: [name, percent(choice.p), bar(choice.p), isChosen ? (data.forced ? "given" : "chosen") : ""] };
  });
  return el("div", { class: "scroll" }, el("table", {}, ...table(["next word", "#p", "", "which"], rows)));
}

/** The vector after the layers: that of the layer that is looked at. */
function stateBlocks(step) {
  const n = at.step + 1, found = [];
  if (step.layers.length) {
    const layer = at.layer || step.layers.length;
    found.push(vectorBlock(`x_${n}^${layer}`, step.layers[layer - 1] ?? step.state, { about: `the output of layer ${layer}` }));
  } else {
    const remark = step.cosine == null ? "" : `cosine to the state before ${number(step.cosine)}`;
    if (step.before) found.push(vectorBlock(`s_${n - 1}`, step.before));
    (step.gates ?? []).forEach((gate, i) => found.push(vectorBlock("gate", gate.vector, { about: `how much of the old state${step.gates.length > 1 ? ` of layer ${i + 1}` : ""} is kept: ${number(gate.mean)} in the mean` })));
    // An answer of an encoder is read off a state of the source.
    if (step.state) found.push(vectorBlock(`s_${n}`, step.state, { about: remark }));
  }
  return found;
}

/** The numbers that one line of the computation makes. */
function made(line, step) {
  const one = hasAttention ? oneHead(step) : null, n = at.step + 1;
  switch (line.makes) {
    case "input": return step.input ? [vectorBlock(madeBy(line.text), step.input)] : [];
    case "query": return one ? [vectorBlock(`q_${n}`, one.query)] : ofMean("a query");
    case "window": return one?.window ? [el("p", {}, formula(`p_${n}`, n), ` = ${number(one.center)}: positions ${one.window[0]} to ${one.window[1]}`)] : [];
    case "score": return one ? [attentionTable(step, "scores"), el("p", { class: "muted" }, `The longest bar is ${number(greatest(one.scores), 3)}; scores below zero are orange.`)] : ofMean("scores");
    case "weights": return [attentionTable(step, "weights")];
    case "context":
      if (!hasAttention) return [...(data.context ? [vectorBlock("c", data.context)] : []), influenceTable(step), influenceMeaning(step)];
      return [attentionTable(step, "sum"), ...(one ? [vectorBlock(madeBy(line.text), one.context)] : []), ...(isOwn() ? [] : [influenceMeaning(step)])];
    case "state": return stateBlocks(step);
    case "residual": return line.part === "model" && step.recurrences.length ? recurrenceTable(step) : [];
    case "readout": return step.readout ? [vectorBlock(madeBy(line.text), step.readout)] : [];
    case "output": return [outputTable(step), ...(hasAttention || lines.some(other => other.makes === "context") || !step.influence.length ? []
      : [influenceTable(step), influenceMeaning(step)])];
    default: return [];
  }
}
