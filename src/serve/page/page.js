/** Sets words that are read out; the same words are not set, and so not read out, twice. */
function setWords(id, words) {
  if (byId(id).textContent !== words) byId(id).textContent = words;
}

/** What the columns share: the models, the sentence, and whether anything is still to come. */
const page = {
  runs: [],
  columns: [],
  isPair: () => asked.columns[1].model !== "",

  /** After any change: the address, the state for tests and readers, faults, and the translation for screen readers. */
  mark() {
    if (!page.runs.length) return;
    toAddress();
    const isBusy = page.timer != null || page.columns.some(column => column.isBusy);
    document.body.dataset.state = isBusy ? "busy" : "ready";
    const name = (column, text) => page.isPair() ? `${column.asked.model}: ${text}` : text;
    for (const column of page.columns) column.host.querySelector(".stage").setAttribute("aria-busy", column.isPending);
    page.fault(page.columns.filter(column => column.fault).map(column => name(column, column.fault.message)).join(" "));
    if (page.columns.some(column => column.fault?.status === 401)) page.askToken();
    const hasAnswer = page.columns.some(column => column.answer);
    byId("play").disabled = !hasAnswer;
    byId("empty").hidden = hasAnswer || isBusy || asked.q.trim() !== "";
    if (!isBusy) page.say(page.columns.filter(column => column.answer).map(column => name(column, column.answer.text)).join(" · "));
    else if (!hasAnswer) page.say("The model is writing.");
  },

  say: words => setWords("status", words),
  fault: words => setWords("fault", words),

  askToken() {
    if (!byId("enter").hidden) return;
    byId("enter").hidden = false;
    byId("token").focus();
  },

  other: column => page.columns[1 - column.index],
  /** Whether both models read the same source tokens; then blanks are shared. */
  isShared() {
    const [one, two] = page.columns.map(column => column.answer && column.source());
    return one != null && two != null && one.join("\n") === two.join("\n");
  },

  /** Blanks a source token, or brings it back; the end of a sentence stays. */
  blank(column, position) {
    if (!column.answer.is_text && position === column.answer.source.length) return;
    const { blank } = column.asked;
    const now = blank.includes(position) ? blank.filter(other => other !== position) : [...blank, position].sort((a, b) => a - b);
    for (const one of page.isShared() ? page.columns : [column]) {
      one.asked.blank = now;
      one.ask();
    }
  },

  undo(column) {
    const isShared = page.isShared(), other = page.other(column);
    Object.assign(column.asked, { prefix: [], blank: [], off: [] });
    column.ask();
    if (!isShared || !other.asked.blank.length) return;
    other.asked.blank = [];
    other.ask();
  },

  /** A model that has just been chosen takes over the blanks of the other one if it reads the same tokens. */
  answered(column) {
    if (!column.isNew) return;
    column.isNew = false;
    const { blank } = page.other(column).asked;
    if (!page.isShared() || blank.length === 0) return;
    column.asked.blank = blank;
    column.ask();
  },

  ask() {
    clearTimeout(page.timer);
    page.timer = null;
    for (const column of page.columns) column.ask();
  },
};

/** The name of a language, if there is one: without any, the run's own name stands for both. */
const language = (run, side) => run[side] !== run.name ? run[side] : null;

const titled = (title, name) => name ? `${title} (${name})` : title;

/** Whether two models read the same: a model without languages may read anything. */
const areAlike = (one, other) => one.is_text === other.is_text
  && (one.source === other.source || !language(one, "source") || !language(other, "source"));

/** Fills the selects; a second model has to read what the first one reads. */
function drawSelects() {
  const [one, two] = asked.columns;
  const first = page.runs.find(run => run.name === one.model) ?? page.runs[0];
  one.model = first.name;
  const likes = page.runs.filter(run => areAlike(first, run));
  if (!likes.some(run => run.name === two.model)) asked.columns[1] = fresh();
  const option = run => el("option", { value: run.name }, run.name);
  byId("model").replaceChildren(...page.runs.map(option));
  byId("model").value = one.model;
  byId("model-label").hidden = page.runs.length < 2;
  byId("with").replaceChildren(el("option", { value: "" }, "no other"), ...likes.map(option));
  byId("with").value = asked.columns[1].model;
  byId("with-label").hidden = likes.length < 2;
  byId("max").replaceChildren(...[...new Set([10, 20, 30, 50, 100, asked.max])].sort((a, b) => a - b).map(n => el("option", { value: n }, String(n))));
  byId("max").value = asked.max;
  byId("max-label").hidden = !first.is_text;
  byId("q-label").textContent = first.is_text ? "Beginning of a text" : titled("Sentence", language(first, "source"));
  byId("q").placeholder = first.is_text ? "Type the beginning of a text" : "Type a sentence";
  byId("go").textContent = first.is_text ? "Go on" : "Translate";
  byId("columns").className = page.isPair() ? "two" : "";
}

/** The field is as high as its text. */
function fitField() {
  const field = byId("q");
  field.style.height = "auto";
  field.style.height = `${field.scrollHeight + 2}px`;
}

/** Takes what was typed. Blanks are positions in the old sentence; given tokens stay if it was only edited. */
function takeSentence() {
  const q = byId("q").value;
  if (q.trim() !== asked.q.trim()) {
    for (const column of asked.columns) Object.assign(column, { blank: [], word: null }, isEdited(asked.q, q) ? {} : { prefix: [], at: null });
  }
  asked.q = q;
}

function restore() {
  fromAddress();
  byId("q").value = asked.q;
  for (const column of page.columns) column.open = null;
  drawSelects();
  fitField();
  page.ask();
}

async function start() {
  try {
    page.runs = (await request("info")).runs;
  } catch (error) {
    if (!(error instanceof Fault)) throw error;
    // Without a token given yet there is nothing wrong; the field says what is missing.
    page.fault(error.status !== 401 ? error.message : access.token ? "The server does not accept this token." : "");
    document.body.dataset.state = "ready";
    byId("ask").hidden = true;
    if (error.status === 401) page.askToken();
    return;
  }
  byId("ask").hidden = false;
  byId("enter").hidden = true;
  restore();
  if (!asked.q) byId("q").focus();
}

page.columns = [0, 1].map(index => new Column(index, page));
byId("columns").append(...page.columns.map(column => column.host));
byId("q").addEventListener("input", () => {
  fitField();
  takeSentence();
  clearTimeout(page.timer);
  page.timer = setTimeout(page.ask, 400);
  page.mark();
});
byId("q").addEventListener("keydown", event => {
  if (event.key !== "Enter" || event.shiftKey || event.isComposing) return;
  event.preventDefault();
  byId("ask").requestSubmit();
});
byId("ask").addEventListener("submit", event => { event.preventDefault(); takeSentence(); page.ask(); });
byId("enter").addEventListener("submit", event => { event.preventDefault(); access.token = byId("token").value.trim(); start(); });
byId("play").addEventListener("click", () => play());
for (const [name, i] of [["model", 0], ["with", 1]]) {
  byId(name).addEventListener("change", event => {
    asked.columns[i] = fresh(event.target.value);
    Object.assign(page.columns[i], { isNew: true, open: null });
    drawSelects();
    page.ask();
  });
}
byId("max").addEventListener("change", event => { asked.max = Number(event.target.value); page.ask(); });
addEventListener("hashchange", () => { if (page.runs.length) restore(); });
document.body.dataset.state = "busy";
start();
