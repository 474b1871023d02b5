const $ = id => document.getElementById(id);
const lines = data.mechanism.formulas;
/** A language model has no source: a step looks at the text before it. */
const isText = data.mechanism.is_text === true;
const inSight = step => isText ? [...data.source, ...data.target.slice(0, step)] : data.source;
const sight = isText ? "text so far" : "source";
const hasAttention = data.heads.length > 0;
const partHeads = { cross: data.heads, own: data.own };
const partsThere = ["cross", "own"].filter(part => partHeads[part].length > 0);
/** What is looked at. Layer 0 and head 0 stand for the mean; stages count from 0. */
const at = { step: 0, part: "cross", stage: 0, layer: 1, head: 1, view: "steps", token: null };

const headsOf = part => partHeads[part] ?? [];
const numbersOf = (part, key) => [...new Set(headsOf(part).map(head => head[key]))].sort((a, b) => a - b);
const isOwn = () => at.part === "own";

/** The mean of several rows of weights. */
const mean = rows => rows[0].map((_, i) => rows.reduce((sum, row) => sum + row[i], 0) / rows.length);

/** The places of the heads that are looked at. */
function chosenHeads() {
  const fits = head => (at.layer === 0 || head.layer === at.layer) && (at.head === 0 || head.head === at.head);
  return headsOf(at.part).flatMap((head, i) => fits(head) ? [i] : []);
}
const rowsOf = step => isOwn() ? step.own : step.rows;

/** One head at a step, or none where a mean is looked at. */
function oneHead(step) {
  const found = chosenHeads();
  return found.length === 1 ? { ...rowsOf(step)[found[0]], values: headsOf(at.part)[found[0]].values } : null;
}

/** What is looked at in a step, by name. */
const looked = step => isOwn() ? [data.steps[0].previous, ...data.target].slice(0, step + 1) : inSight(step);

const measured = step => step.influence.reduce((sum, value) => sum + Math.abs(value), 0) >= 0.0005;

/** What links what was written to what it looked at: weights, or shares of the influence where there is no attention. */
function linkWeights(step) {
  if (hasAttention) return mean(chosenHeads().map(i => rowsOf(step)[i].weights));
  if (!measured(step)) return step.influence.map(() => 0);
  const sum = step.influence.reduce((sum, value) => sum + Math.abs(value), 0);
  return step.influence.map(value => value / sum);
}

/** The most that any step's influence reaches, but at least one nat: bars of all steps have this scale. */
const influenceScale = Math.max(1, ...data.steps.map(step => greatest(step.influence)));

/** What is a mean of what, in words. */
function headsInWords() {
  const n = chosenHeads().length;
  if (!hasAttention) return "";
  if (n > 1) {
    const layers = numbersOf(at.part, "layer").length;
    if (at.layer !== 0) return `the mean of the ${n} heads of layer ${at.layer}`;
    return at.head !== 0 ? `the mean of head ${at.head} of all ${layers} layers` : `the mean of all ${n} heads of ${plural(layers, "layer")}`;
  }
  return headsOf(at.part).length > 1 ? `layer ${at.layer}, head ${at.head}` : "the one head";
}

/** The head whose weights are nearest to the mean of all: what is shown at first. */
function typicalHead() {
  const distances = data.heads.map(() => 0);
  for (const step of data.steps) {
    const middle = mean(step.rows.map(row => row.weights));
    step.rows.forEach((row, i) => row.weights.forEach((weight, j) => { distances[i] += (weight - middle[j]) ** 2; }));
  }
  return data.heads[distances.indexOf(Math.min(...distances))] ?? { layer: 1, head: 1 };
}
