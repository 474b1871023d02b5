/** The tokens that the model could have written at the open step, and a field for any other. */
function drawChoices(column) {
  const { host, answer } = column, panel = host.querySelector(".choices"), at = column.open;
  for (const [place, unit] of column.units) {
    if (place[0] === "t" && place !== "t-1") unit.firstChild.setAttribute("aria-expanded", place === `t${at - 1}`);
  }
  panel.hidden = !answer || !at;
  if (panel.hidden) return panel.replaceChildren();
  const { token, id, given, candidates } = answer.target[at - 1];
  // Two tokens may differ in nothing but their marks.
  const isAlone = ({ token }) => candidates.filter(other => bare(other.token) === bare(token)).length === 1;
  const candidate = one => {
    const bar = el("span", { class: "bar" });
    bar.style.width = `${(100 * one.probability).toFixed(1)}%`;
    return el("li", {}, el("button", { type: "button", "data-candidate": one.id, "aria-current": one.id === id, title: one.token, onclick: () => column.choose(at, [one.id]) },
      el("bdi", {}, isAlone(one) ? bare(one.token) : one.token), bar, el("span", { class: "number" }, percent(one.probability))));
  };
  const field = el("input", { type: "text", placeholder: "another word", "aria-label": `another word at step ${at}`, autocomplete: "off", spellcheck: "false" });
  const fault = el("p", { role: "alert" });
  const write = async event => {
    event.preventDefault();
    if (!field.value.trim()) return;
    // Where a space is part of the token after it, the new one gets it too.
    const space = answer.is_text && /^␣./u.test(token) && !field.value.startsWith(" ") ? " " : "";
    const q = answer.is_text ? space + field.value : field.value.trim();
    try {
      const { ids } = await request("tokenize", { model: answer.model, q, side: "target" });
      if (column.answer === answer) column.choose(at, ids);
    } catch (error) {
      if (!(error instanceof Fault)) throw error;
      fault.textContent = error.message;
    }
  };
  panel.replaceChildren(
    el("h3", {}, `Step ${at}: instead of `, el("bdi", {}, bare(token))),
    el("ol", {}, ...candidates.map(candidate)),
    el("form", { class: "toolbar", autocomplete: "off", onsubmit: write }, field, el("button", {}, "go on with it"),
      given ? el("button", { type: "button", "data-let": at, onclick: () => column.choose(at, []) }, "let the model choose again") : null), fault);
}

/** What was changed by hand, and what the model would have written without that. */
function drawChange(column) {
  const { host, answer, untouched } = column, mine = column.asked, panel = host.querySelector(".change");
  panel.hidden = !isTouched(mine);
  column.marks = null;
  if (panel.hidden) return panel.replaceChildren();
  const by = [[mine.prefix.length, "given token"], [mine.blank.length, "blanked token"], [mine.off.length, "head"]]
    .filter(([n]) => n).map(([n, word]) => plural(n, word) + (word === "head" ? " off" : ""));
  const undo = el("div", { class: "toolbar screen-only" }, `${by.join(", ")} `,
    el("button", { type: "button", "data-undo": true, onclick: () => column.page.undo(column) }, "undo all"));
  if (!answer) return panel.replaceChildren(undo);
  column.marks = differences(answer.target.map(({ id }) => id), untouched.target.map(({ id }) => id));
  const labels = untouched.target.map(({ token }) => token), before = spaces(labels);
  const words = labels.flatMap((label, i) => [i && before[i] ? " " : "", el("span", { class: column.marks[1][i] ? "changed" : null }, el("bdi", {}, bare(label)))]);
  const own = answer.target.filter(({ given }) => !given), hasGiven = own.length < answer.target.length;
  panel.replaceChildren(
    el("p", { class: "words" }, "untouched: ", ...words),
    column.marks.flat().includes(true) ? "" : el("p", {}, "The model writes the same tokens."),
    el("p", {}, `log-probability of the whole: ${logProbability(answer.target)}`, hasGiven ? ` (of the model's own tokens ${logProbability(own)})` : "",
      `; untouched: ${logProbability(untouched.target)}`),
    undo);
}
