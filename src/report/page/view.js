// What all pages of reports share: shortcuts, the projector view, the address, hints, marks, sorting, copying.

const plural = (n, word) => `${n} ${word}${n === 1 ? "" : "s"}`;
const percent = p => p >= 0.9995 ? "100 %" : p >= 0.0995 ? `${(100 * p).toFixed(0)} %` : p >= 0.001 ? `${(100 * p).toFixed(1)} %` : "< 0.1 %";
/** A number with a true minus sign; what rounds to zero has none. */
const number = (value, digits = 2) => (Math.abs(value) < 0.5 * 10 ** -digits ? 0 : value).toFixed(digits).replace("-", "−");
/** One letter in the page's own size, for what is painted. */
const letter = () => parseFloat(getComputedStyle(document.body).fontSize);
const isWall = () => document.documentElement.classList.contains("wall");

/** What the page keeps in its address, so that a link shows the same. */
const address = {
  read: () => Object.fromEntries(new URLSearchParams(location.hash.slice(1))),
  write(state) {
    const kept = Object.entries({ ...state, wall: isWall() ? 1 : null }).filter(([, value]) => value != null && value !== "");
    const hash = `#${new URLSearchParams(kept)}`;
    if (hash !== (location.hash || "#")) history.replaceState(null, "", hash);
  },
};
/** The view of the address; whether it is another one than before. */
function takeView() {
  const isOn = Boolean(address.read().wall), isNew = isOn !== isWall();
  document.documentElement.classList.toggle("wall", isOn);
  for (const button of document.querySelectorAll("[data-wall]")) button.setAttribute("aria-pressed", isOn);
  return isNew;
}
takeView();
// Also where an address is typed in, or gone back to.
addEventListener("hashchange", () => { if (takeView()) dispatchEvent(new Event("resize")); });
/** A whole number of an address, where it is one of `there`. */
const oneOf = (text, there, otherwise) => there.find(value => String(value) === text) ?? otherwise;

/** Large, without controls, on the whole screen; and back. */
function wall(isOn = !isWall()) {
  document.documentElement.classList.toggle("wall", isOn);
  if (isOn) document.documentElement.requestFullscreen?.().catch(() => {});
  else if (document.fullscreenElement) document.exitFullscreen();
  for (const button of document.querySelectorAll("[data-wall]")) button.setAttribute("aria-pressed", isOn);
  hint(null);
  dispatchEvent(new Event("resize"));
}
document.addEventListener("fullscreenchange", () => { if (!document.fullscreenElement && isWall()) wall(false); });

/** Keys to functions, wherever the focus is, except in a field for text; `f` and `m` work on every page. */
function shortcuts(handlers) {
  const all = { f: () => wall(), m: () => marks.turn(), ...handlers };
  addEventListener("keydown", event => {
    if (event.ctrlKey || event.metaKey || event.altKey || event.isComposing) return;
    if (isTextField(event.target)) { if (event.key === "Escape") event.target.blur(); return; }
    hint(null);
    const handler = all[event.key];
    if (handler) { event.preventDefault(); handler(event); }
    if (event.key === "Escape" && isWall()) wall(false);
  });
}

/** What stands beside the pointer: the data-tip of an element, or what its `says` tells of the place. */
const tip = el("div", { id: "tip", role: "tooltip", hidden: true });
document.body.append(tip);
function hint(text, x = 0, y = 0) {
  tip.hidden = !text;
  if (!text) return;
  tip.textContent = text;
  const box = tip.getBoundingClientRect();
  tip.style.left = `${Math.max(4, Math.min(x + 12, innerWidth - box.width - 4))}px`;
  tip.style.top = `${y - box.height - 10 < 4 ? y + 18 : y - box.height - 10}px`;
}
for (const kind of ["pointermove", "pointerdown"]) {
  addEventListener(kind, event => {
    const found = event.target.closest?.("[data-tip], [data-says]");
    hint(found && (found.says ? found.says(event) : found.dataset.tip), event.clientX, event.clientY);
  });
}
// A hint does not stay when its element is scrolled away.
addEventListener("scroll", () => hint(null), true);
document.addEventListener("pointerleave", () => hint(null));

/** Marks of tokens: hidden by default. */
const marks = {
  areShown: address.read().marks === "1",
  change: () => {},
  turn() {
    const box = document.getElementById("marks"), isFocused = box?.contains(document.activeElement);
    this.areShown = !this.areShown;
    this.explain();
    this.change();
    if (isFocused) box.querySelector("input").focus({ preventScroll: true });
  },
  explain() {
    const box = document.getElementById("marks");
    if (!box || !this.tokens?.some(token => bare(token) !== token || isSpecial(token))) { if (box) box.hidden = true; return; }
    const has = mark => this.tokens.some(token => token.startsWith(mark));
    const meanings = [["▁", "a space before the token"], ["Ġ", "a space before the token"], ["␣", "a space"], ["##", "no space before the token"], ["<s>", "the start"], ["</s>", "the end"], ["<unk>", "an unknown word"]];
    box.replaceChildren(el("label", {}, el("input", { type: "checkbox", onchange: () => this.turn() }), " marks of the tokens "), el("kbd", {}, "m"),
      el("span", {}, ` ${meanings.filter(([mark]) => has(mark) || mark === "<s>").map(([mark, meaning]) => `${mark} stands for ${meaning}`).join(", ")}.`));
    box.querySelector("input").checked = this.areShown;
  },
};
/** The text of a token as it is shown. */
function shownToken(text) {
  if (marks.areShown) return text;
  if (text === "<s>" || text === "<bos>") return "start";
  return text === "</s>" ? "end" : bare(text);
}
const token = text => el("span", { class: isSpecial(text) ? "token special" : "token" }, shownToken(text));

/** A table of names of columns and rows of cells; names that begin with # stand over numbers, empty ones over bars. */
function table(names, rows) {
  const kind = i => names[i].startsWith("#") ? "number" : names[i].trim() === "" ? "bars" : null;
  const head = el("tr", {}, ...names.map((name, i) => name.trim() === "" ? el("td", { class: kind(i) }) : el("th", { scope: "col", class: kind(i) }, name.replace("#", ""))));
  const body = rows.map(row => el("tr", { class: row.class }, ...row.cells.map((cell, i) => el("td", { class: kind(i) }, cell))));
  return [el("thead", {}, head), el("tbody", {}, ...body)];
}

/** Lets a click, or Enter, on a column's name sort the rows by it: numbers by value, the rest by the alphabet. */
function sortable(table) {
  const heads = [...table.tHead.rows[0].cells];
  heads.forEach((head, column) => {
    const button = head.querySelector("button");
    button?.addEventListener("click", () => {
      const isUp = head.getAttribute("aria-sort") !== "ascending";
      for (const other of heads) other.removeAttribute("aria-sort");
      head.setAttribute("aria-sort", isUp ? "ascending" : "descending");
      const key = row => row.cells[column].dataset.value ?? row.cells[column].textContent;
      const order = (a, b) => {
        const [x, y] = [key(a), key(b)];
        const numbers = x !== "" && y !== "" && !isNaN(x) && !isNaN(y);
        return (numbers ? x - y : String(x).localeCompare(String(y))) * (isUp ? 1 : -1);
      };
      table.tBodies[0].append(...[...table.tBodies[0].rows].sort(order));
    });
  });
}

/** Panels that scroll take the focus, so that keys reach what they hide. */
function reachable() {
  for (const box of document.querySelectorAll(".scroll, .panel")) {
    const scrolls = box.scrollWidth > box.clientWidth + 1 || box.scrollHeight > box.clientHeight + 1;
    if (scrolls && !box.hasAttribute("tabindex")) { box.tabIndex = 0; box.dataset.reached = ""; if (!box.hasAttribute("role")) { if (box.tagName !== "FIGURE") box.setAttribute("role", "group"); if (!box.hasAttribute("aria-label")) box.setAttribute("aria-label", "more when scrolled"); } }
    if (!scrolls && "reached" in box.dataset) { box.removeAttribute("tabindex"); delete box.dataset.reached; }
  }
}
