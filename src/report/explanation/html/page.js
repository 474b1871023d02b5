/** Changes what is looked at, keeps it possible, and draws it. */
function go(change) {
  Object.assign(at, change);
  at.step = Math.min(data.steps.length - 1, Math.max(0, at.step));
  if ("part" in change) for (const key of ["layer", "head"]) if (at[key] !== 0 && !numbersOf(at.part, key).includes(at[key])) at[key] = numbersOf(at.part, key)[0] ?? 1;
  draw();
}

function controls() {
  const heads = headsOf(at.part), hasHeads = heads.length > 1;
  for (const button of document.querySelectorAll("[data-view]")) button.setAttribute("aria-pressed", String(button.dataset.view === at.view));
  for (const section of document.querySelectorAll(".view")) section.hidden = section.id !== at.view;
  const isSteps = at.view === "steps";
  $("slider").value = at.step + 1;
  for (const id of ["step-controls", "all-label"]) $(id).hidden = !isSteps;
  $("head-controls").hidden = at.view === "words" || !hasHeads;
  $("part-label").hidden = $("part-keys").hidden = partsThere.length < 2 || !isSteps;
  $("layer-label").hidden = !isSteps;
  $("head-keys").hidden = !hasHeads;
  const fill = (select, all, value) => { select.replaceChildren(...all.map(([value, text]) => el("option", { value }, text))); select.value = value; };
  const layers = numbersOf(at.part, "layer"), numbers = numbersOf(at.part, "head");
  fill($("part"), partsThere.map(part => [part, part === "own" ? "target so far" : "source"]), at.part);
  fill($("layer"), [[0, "mean"], ...layers.map(n => [n, n])], at.layer);
  fill($("head"), [[0, "mean"], ...numbers.map(n => [n, n])], at.head);
}

function draw() {
  const step = data.steps[at.step];
  controls();
  if (at.view === "words") drawWords();
  else if (at.view === "layers") { drawBands(); drawStates(); }
  else if (step) { drawSentence(step); drawRibbon(step); drawScene(step); }
  reachable();
  address.write({ view: at.view === "steps" ? null : at.view, step: at.step + 1, stage: at.stage + 1, part: at.part === partsThere[0] ? null : at.part, layer: at.layer, head: at.head, marks: marks.areShown ? 1 : null });
}

/** What the address says, where that is there. */
function restore() {
  const kept = address.read(), known = (key, there, otherwise) => oneOf(kept[key], there, otherwise);
  at.part = known("part", partsThere, at.part);
  at.view = known("view", ["words", "layers", "steps"], at.view);
  at.step = known("step", data.steps.map((_, i) => i + 1), at.step + 1) - 1;
  at.stage = known("stage", stages().map((_, i) => i + 1), at.stage + 1) - 1;
  at.layer = known("layer", [0, ...numbersOf(at.part, "layer")], at.layer);
  at.head = known("head", [0, ...numbersOf(at.part, "head")], at.head);
}

/** A key that means a step or a head shows the steps, if another view hides them. */
const inSteps = act => () => { at.view = "steps"; act(); };
const move = by => inSteps(() => go({ step: at.step + by }));
const moveStage = by => inSteps(() => { const n = stages().length; go({ stage: (at.stage + by + n) % n }); });
const cycle = (name, by) => () => {
  const all = [0, ...numbersOf(at.part, name)];
  if (headsOf(at.part).length < 2) return;
  if (name === "layer") at.view = "steps";
  go({ [name]: all[(all.indexOf(at[name]) + by + all.length) % all.length] });
};

at.part = partsThere[0] ?? "cross";
const typical = hasAttention ? typicalHead() : { layer: 0, head: 0 };
// A layer without attention of this part has no head to show.
const chosen = (name, otherwise) => numbersOf(at.part, name).includes(data.at[name]) ? data.at[name] : otherwise;
Object.assign(at, { step: (data.at.step ?? 1) - 1, layer: chosen("layer", typical.layer), head: chosen("head", typical.head),
  stage: Math.max(0, stages().findIndex(stage => stage.id === "weights" || stage.id === "next")) });
restore();
marks.tokens = [...data.source, ...data.target];
marks.change = draw;
marks.explain();
$("notes").replaceChildren(...data.notes.map(note => el("p", { class: "warm" }, note)));
$("slider").max = Math.max(1, data.steps.length);
$("previous").addEventListener("click", move(-1));
$("next").addEventListener("click", move(1));
$("slider").addEventListener("input", () => go({ step: Number($("slider").value) - 1 }));
$("part").addEventListener("change", () => go({ part: $("part").value }));
for (const name of ["layer", "head"]) $(name).addEventListener("change", () => go({ [name]: Number($(name).value) }));
$("all").addEventListener("change", draw);
$("source").addEventListener("scroll", () => { const step = data.steps[at.step]; if (at.view === "steps" && step) drawArcs(linkWeights(step), looked(at.step).length); });
for (const button of document.querySelectorAll("[data-view]")) button.addEventListener("click", () => go({ view: button.dataset.view }));
copying("explanation", () => at.view === "steps" ? stepRows() : vectorRows(), () => $(at.view));
shortcuts({
  ArrowRight: move(1), ArrowLeft: move(-1), Home: move(-data.steps.length), End: move(data.steps.length),
  ArrowDown: moveStage(1), ArrowUp: moveStage(-1),
  l: cycle("layer", 1), L: cycle("layer", -1), h: cycle("head", 1), H: cycle("head", -1), a: () => hasAttention && go({ layer: 0, head: 0 }),
  c: inSteps(() => partsThere.length > 1 && go({ part: partsThere[1 - partsThere.indexOf(at.part)] })),
  1: () => go({ view: "words" }), 2: () => go({ view: "layers" }), 3: () => go({ view: "steps" }),
});
addEventListener("hashchange", () => { restore(); draw(); });
redraw(draw);
