// The two texts, one above the other, and arcs from the word that is written to what it looks at.

/** A row of tokens in `host`. Spaces are those of the text; `make` makes the element of a token. */
function drawRow(host, tokens, make) {
  const before = spaces(tokens);
  host.dir = isLeftward(tokens.filter(text => !isSpecial(text)).join(" ")) ? "rtl" : "ltr";
  host.replaceChildren(...tokens.map((text, i) => {
    const unit = make(text, i);
    if (before[i] && i > 0) unit.classList.add("apart");
    if (isSpecial(text)) unit.classList.add("special");
    return unit;
  }));
}

/** How a weight shows on a token. */
function weigh(unit, weight) {
  unit.style.setProperty("--share", Math.min(1, Math.abs(weight ?? 0)).toFixed(3));
  unit.classList.toggle("seen", Math.abs(weight ?? 0) >= 0.005);
  unit.classList.toggle("against", weight < 0);
}

function drawScene(step) {
  const weights = linkWeights(step), names = looked(at.step);
  const says = (name, weight) => weight == null ? shownToken(name) : `${shownToken(name)}: ${hasAttention ? "weight" : "share of the influence"} ${number(weight, 3)}`;
  drawRow($("source"), data.source, (name, i) => {
    const weight = isOwn() ? null : weights[i];
    const unit = el("span", { class: "unit", "data-tip": says(name, weight) }, shownToken(name));
    if (weight != null) weigh(unit, weight);
    return unit;
  });
  const start = isText ? [] : [data.steps[0].previous];
  const offset = isOwn() ? 0 : data.source.length - start.length;
  const focused = document.activeElement?.closest("#target") != null;
  drawRow($("target"), [...(isOwn() ? start : []), ...data.target], (name, i) => {
    const t = isOwn() ? i - start.length : i;
    const isPart = isOwn() ? i <= at.step : isText && t < at.step;
    const weight = isPart ? weights[isOwn() ? i : offset + t] : null;
    const state = t === at.step ? "now" : t < at.step ? "written" : "ahead";
    const unit = t < 0 ? el("span", { class: "unit written", "data-tip": says(name, weight) }, shownToken(name))
      : el("button", { type: "button", class: `unit ${state}`, "data-step": t, tabindex: t === at.step ? 0 : -1, "aria-current": t === at.step ? "step" : null,
        "data-tip": weight == null ? `step ${t + 1}` : says(name, weight), onclick: () => go({ step: t }) }, shownToken(name));
    if (weight != null) weigh(unit, weight);
    return unit;
  });
  if (focused) $("target").querySelector(".now")?.focus({ preventScroll: true });
  showStrongest(weights);
  drawArcs(weights, names.length);
}

/** Scrolls a long source to the word that is looked at most. */
function showStrongest(weights) {
  const box = $("source"), units = [...box.children];
  if (isOwn() || box.scrollHeight <= box.clientHeight + 1) return;
  const unit = units[units.reduce((best, _, i) => Math.abs(weights[i] ?? 0) > Math.abs(weights[best] ?? 0) ? i : best, 0)];
  box.scrollTop = unit.offsetTop - (box.clientHeight - unit.offsetHeight) / 2;
}

/** The elements of what is looked at, in their order. */
function seenUnits() {
  const source = [...$("source").children], target = [...$("target").children];
  return isOwn() ? target : isText ? [...source, ...target] : source;
}

function drawArcs(weights, n) {
  const picture = $("arcs"), scene = $("scene").getBoundingClientRect();
  const box = element => {
    const { left, top, width, bottom } = element.getBoundingClientRect();
    return { x: left - scene.left + width / 2, top: top - scene.top, bottom: bottom - scene.top };
  };
  // On paper the texts keep their lines, so that the arcs still meet their words: they are made smaller instead.
  $("scene").style.setProperty("--wide", `${scene.width}px`);
  $("scene").style.setProperty("--shrink", Math.min(1, 690 / scene.width).toFixed(3));
  // A word that is scrolled away has no arc.
  const frame = box($("source")), isHidden = element => element.parentNode.id === "source" && (box(element).bottom < frame.top + 8 || box(element).top > frame.bottom - 8);
  const units = seenUnits().slice(0, n).map(unit => isHidden(unit) ? null : box(unit)), parts = [];
  const arc = (from, to, weight, isNow) => {
    // Over the row from word to word, or down from row to row.
    const isBeside = Math.abs(from.top - to.top) < 20;
    const lift = Math.min(70, 18 + 0.22 * Math.abs(from.x - to.x));
    const middle = (from.top + to.bottom) / 2;
    const d = isBeside ? `M${to.x} ${to.top}C${to.x} ${to.top - lift} ${from.x} ${from.top - lift} ${from.x} ${from.top}`
      : `M${to.x} ${to.bottom}C${to.x} ${middle} ${from.x} ${middle} ${from.x} ${from.top}`;
    const size = Math.min(1, Math.abs(weight));
    parts.push(svg("path", { d, class: weight < 0 ? "against" : "for", "stroke-width": (1 + 11 * size).toFixed(1), "stroke-opacity": isNow ? (0.3 + 0.7 * size).toFixed(2) : 0.14 }));
  };
  const targets = new Map([...$("target").querySelectorAll("[data-step]")].map(unit => [Number(unit.dataset.step), box(unit)]));
  data.steps.forEach((other, t) => {
    const isNow = t === at.step;
    if (!isNow && !$("all").checked) return;
    (isNow ? weights : linkWeights(other)).forEach((weight, i) => {
      if (units[i] && Math.abs(weight) >= (isNow ? 0.01 : 0.1)) arc(targets.get(t), units[i], weight, isNow);
    });
  });
  picture.replaceChildren(...parts);
}

function drawSentence(step) {
  const parts = [el("b", {}, `Step ${at.step + 1} of ${data.steps.length}`), `: the ${data.mechanism.answers ? "answer for" : "word after"} `, token(step.previous), " is ",
    token(step.chosen.token), ` with ${percent(step.chosen.p)}`];
  if (!step.agrees) {
    parts.push(el("span", { class: "warm" }, "; the model would rather have ", token(step.preferred.token), ` (${percent(step.preferred.p)})`));
  }
  if (!hasAttention) parts.push(el("span", { class: "muted" }, measured(step) ? ". Arcs: shares of gradient × input" : ". No measurable influence of the source"));
  else if (headsOf(at.part).length > 1) parts.push(el("span", { class: "muted" }, `. Arcs: ${headsInWords()}${isOwn() ? ", of the target so far" : ""}`));
  $("sentence").replaceChildren(...parts);
}
