/** The request to one model, and the selected part of its answer. Positions, layers and heads count from 1. */
const fresh = (model = "") => ({ model, prefix: [], blank: [], off: [], at: null, word: null, view: null, layer: null, head: null });

/** Everything that the address keeps. The second model is empty if there is none. */
const asked = { q: "", max: 30, columns: [fresh(), fresh()] };

const isTouched = ({ prefix, blank, off }) => prefix.length + blank.length + off.length > 0;
const NUMBERS = ["at", "word", "layer", "head"];

/** The address as it was last written. */
let written = null;

/** The state as readable words after #. The second model's have a 2, but for what it shares with the first. */
function toAddress() {
  const words = new URLSearchParams();
  const set = (name, value) => { if (value != null && value !== "") words.set(name, value); };
  set("q", asked.q);
  if (asked.max !== 30) set("max", asked.max);
  asked.columns.forEach((column, i) => {
    if (!column.model) return;
    const mark = i ? "2" : "";
    set(i ? "with" : "model", column.model);
    set(`prefix${mark}`, column.prefix.join("."));
    // An empty list of the second model is written as well: it says that it does not share the blanks.
    const blank = column.blank.join(".");
    if (i && blank !== asked.columns[0].blank.join(".")) words.set("blank2", blank);
    else if (!i) set("blank", blank);
    set(`off${mark}`, column.off.join(" "));
    for (const name of NUMBERS) set(name + mark, column[name]);
    set(`view${mark}`, column.view);
  });
  const address = words.size ? `#${words}` : location.pathname + location.search;
  // Some browsers allow few changes in a minute, and this is called at each step that is shown.
  if (address !== written) history.replaceState(null, "", address);
  written = address;
}

/** Takes the state from the address; what cannot be meant is left out. */
function fromAddress() {
  const words = new URLSearchParams(location.hash.slice(1));
  written = null;
  const whole = (text, least) => /^\d+$/.test(text ?? "") && Number(text) >= least ? Number(text) : null;
  const list = (name, least) => (words.get(name) ?? "").split(".").map(part => whole(part, least)).filter(n => n != null);
  asked.q = words.get("q") ?? "";
  asked.max = whole(words.get("max"), 1) ?? 30;
  asked.columns = ["", "2"].map(mark => ({
    ...fresh(words.get(mark ? "with" : "model") ?? ""),
    prefix: list(`prefix${mark}`, 0),
    blank: list(words.has(`blank${mark}`) ? `blank${mark}` : "blank", 1),
    off: (words.get(`off${mark}`) ?? "").split(" ").filter(name => name),
    view: words.get(`view${mark}`),
    ...Object.fromEntries(NUMBERS.map(name => [name, whole(words.get(name + mark), 1)])),
  }));
}
