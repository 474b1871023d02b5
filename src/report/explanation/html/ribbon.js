// The row of stages: query, scores, softmax, weighted sum, next words. The selected stage is large.

/** The strongest of what is looked at, by `rank`, in their order, each with a bar. */
function smallBars(names, numbers, scale, rank = Math.abs) {
  const order = numbers.map((_, i) => i).sort((a, b) => rank(numbers[b]) - rank(numbers[a])).slice(0, 9).sort((a, b) => a - b);
  return el("div", { class: "small-bars" }, ...order.flatMap(i => [el("span", { class: "name" }, shownToken(names[i])), el("span", {}, bar(Math.abs(numbers[i]) / scale, numbers[i] < 0))]));
}

/** What a stage shows while another one is looked at. */
function glimpse(stage, step) {
  const one = hasAttention ? oneHead(step) : null, names = looked(at.step);
  const small = { isBare: true, rows: 8, height: 18 };
  switch (stage.id) {
    case "query": return one ? vectorBlock(`q_${at.step + 1}`, one.query, small) : el("p", { class: "muted" }, "one for each head");
    case "scores": return one ? smallBars(names, one.scores, greatest(one.scores) || 1, score => score) : el("p", { class: "muted" }, "one row for each head");
    case "weights": return smallBars(names, linkWeights(step), 1);
    case "sum": return one ? vectorBlock(`z_${at.step + 1}`, one.context, small) : el("p", { class: "muted" }, "one for each head");
    case "word": return el("p", {}, token(step.previous));
    case "context": return data.context ? vectorBlock("c", data.context, small) : smallBars(names, step.influence, influenceScale);
    case "state": {
      const state = step.layers[(at.layer || step.layers.length) - 1] ?? step.state;
      return state ? vectorBlock("s", state, small) : "";
    }
    default: return smallBars(step.top.slice(0, 8).map(choice => choice.token), step.top.slice(0, 8).map(choice => choice.p), 1);
  }
}

function drawRibbon(step) {
  const all = stages();
  at.stage = Math.min(at.stage, all.length - 1);
  // What had the focus is made anew: the focus stays with its stage.
  const focused = document.activeElement?.closest("#ribbon li") ? document.activeElement : null;
  const isNumbers = focused?.tagName === "SUMMARY", nth = isNumbers ? [...document.querySelectorAll("#ribbon summary")].indexOf(focused) : 0;
  const card = (stage, i) => {
    const isNow = i === at.stage;
    const title = el("button", { type: "button", class: "name-of-stage", "aria-expanded": isNow, onclick: () => go({ stage: i }) }, el("span", { class: "n" }, String(i + 1)), stage.name);
    const body = isNow ? stage.lines.map(line => el("section", {}, el("p", { class: "line" }, formula(line.text, at.step + 1), " ", el("span", { class: "muted" }, line.meaning)), ...made(line, step)))
      : [el("p", { class: "line" }, formula(stage.lines.at(stage.id === "query" || stage.id === "sum" ? (stage.id === "sum" ? 0 : -1) : -1).text, at.step + 1)), glimpse(stage, step)];
    return el("li", { class: isNow ? "now grows" : "grows", "data-stage": stage.id, onclick: event => { if (i !== at.stage && !event.target.closest("button")) go({ stage: i }); } }, title, el("div", { class: isNow ? "detail scroll" : "glimpse" }, ...body));
  };
  $("ribbon").replaceChildren(...all.map(card));
  const again = isNumbers ? document.querySelectorAll("#ribbon summary")[nth] : null;
  if (focused) (again ?? $("ribbon").querySelectorAll(".name-of-stage")[at.stage]).focus({ preventScroll: true });
}

/** What is shown of the step, as rows of a table. */
function stepRows() {
  const step = data.steps[at.step], one = hasAttention ? oneHead(step) : null, names = looked(at.step), weights = hasAttention ? linkWeights(step) : null;
  const head = [isOwn() ? "target so far" : sight, ...(one ? ["score"] : []), ...(weights ? ["weight"] : []), ...(isOwn() || !step.influence.length ? [] : ["grad x input"])];
  const rows = names.map((name, i) => [name, ...(one ? [one.scores[i]] : []), ...(weights ? [weights[i]] : []), ...(isOwn() || !step.influence.length ? [] : [step.influence[i]])]);
  const next = [["next word", "p"], ...step.top.map(choice => [choice.token, choice.p])];
  const vectors = one ? [["vector", "numbers"], ["q", ...valuesOf(one.query)], ["z", ...valuesOf(one.context)]] : [];
  return [["step", at.step + 1, "after", step.previous, "chosen", step.chosen.token, step.chosen.p], [hasAttention ? headsInWords() : ""], head, ...rows, ...next, ...vectors];
}
