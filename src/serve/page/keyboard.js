/** The columns that a key means: the one with the focus, else all that have an answer. */
function meant() {
  const focused = page.columns.filter(column => column.host.contains(document.activeElement));
  return (focused.length ? focused : page.columns).filter(column => column.answer);
}

const play = () => { for (const column of meant()) column.grow(); };

/** Moves the step, and the focus with it if it is on a token. */
function moveBy(by, event) {
  const button = event.target.closest("[data-token]");
  if (!button) { for (const column of meant()) column.move(by); return; }
  const [column] = meant(), all = [...button.closest(".tokens").querySelectorAll("[data-token]")];
  const next = all[all.indexOf(button) + by];
  if (!next) return;
  if (column.open) { column.open = button.dataset.place[0] === "t" ? Number(next.dataset.token) : null; drawChoices(column); }
  next.focus();
}

/** From the source row to the target row and back; elsewhere the page scrolls as ever. */
function changeRow(event, side) {
  const row = event.target.closest("[data-token]") && event.target.closest(".stage").querySelector(`[data-side=${side}]`);
  if (!row || row.contains(event.target)) return;
  event.preventDefault();
  (row.querySelector(".now button") ?? row.querySelector("[data-token]"))?.focus();
}

/** The next of several values of what is looked at, null (the mean) among them. */
function turn(name, by) {
  for (const column of meant()) {
    const look = column.look();
    const maps = column.answer.maps.filter(map => map.part === look.view && (name === "layer" || look.layer == null || map.layer === look.layer));
    const all = name === "view" ? viewsOf(column.answer) : [null, ...new Set(maps.map(map => map[name]).filter(n => n != null))];
    if (all.length < 2) continue;
    const next = all[(all.indexOf(look[name]) + by + all.length) % all.length];
    column.change(name === "view" ? { view: next, layer: null, head: null } : { [name]: next });
  }
}

/** Switches off, or on again, the head that has the focus, or the chosen one. */
function switchHead(event) {
  for (const column of meant()) {
    const { view, layer, head } = column.look();
    const name = event.target.closest("[data-head]")?.dataset.head ?? (layer && head ? mapName({ part: view, layer, head }) : null);
    if (name) column.toggleHead(name);
  }
}

/** Closes the candidates; with none open, shows all steps. */
function leave() {
  for (const column of page.columns.filter(column => column.answer)) {
    const place = column.open && `t${column.open - 1}`;
    column.pointed = null;
    if (place) column.open = null; else Object.assign(column.asked, { at: null, word: null });
    drawChoices(column);
    if (place && column.host.contains(document.activeElement)) column.units.get(place)?.firstChild.focus();
    column.stop();
    column.show();
  }
  page.mark();
}

keys({
  ArrowRight: event => moveBy(1, event), ArrowLeft: event => moveBy(-1, event),
  p: play, v: () => turn("view", 1), l: () => turn("layer", 1), L: () => turn("layer", -1), h: () => turn("head", 1), H: () => turn("head", -1),
  a: () => { for (const column of meant()) column.change({ layer: null, head: null }); },
  x: switchHead, "/": () => byId("q").focus(),
});
// These keys have another use where they are not meant here.
addEventListener("keydown", event => {
  if (event.ctrlKey || event.metaKey || event.altKey) return;
  if (event.key === "Escape") leave();
  if (event.key === "ArrowUp") changeRow(event, "source");
  if (event.key === "ArrowDown") changeRow(event, "target");
  if (event.key === " " && event.target === document.body) { event.preventDefault(); play(); }
});
// On paper, lines of text break elsewhere.
matchMedia("print").addEventListener("change", () => { for (const column of page.columns) column.show(); });
// The small pictures have the colours of the theme in them.
redraw(() => { for (const column of page.columns) if (column.answer) { build(column); column.show(); } });
