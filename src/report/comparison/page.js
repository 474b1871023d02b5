// The titles of points become hints, shown at once and on touch too.
for (const title of document.querySelectorAll("figure svg title")) {
  title.parentNode.dataset.tip = title.textContent;
  title.remove();
}

// Hovering over a line, or over its model in the table, dims the others in every chart.
function dim(series) {
  for (const line of document.querySelectorAll("g.series")) line.classList.toggle("dimmed", series != null && line.dataset.series !== series);
}
const seriesOf = event => event.target.closest?.("[data-series]")?.dataset.series ?? null;
addEventListener("pointerover", event => dim(seriesOf(event)));
addEventListener("focusin", event => dim(seriesOf(event)));

for (const table of document.querySelectorAll("table.sortable")) sortable(table);

// A link to a section, or an address that names one, opens it.
const sectionOf = hash => hash.slice(1).split("&").find(part => !part.startsWith("wall=")) ?? "";
function unfold() {
  const section = document.getElementById(sectionOf(location.hash))?.closest("details.section");
  if (!section) return;
  section.open = true;
  section.scrollIntoView();
}
addEventListener("hashchange", unfold);
for (const link of document.querySelectorAll("nav.contents a")) link.addEventListener("click", () => setTimeout(unfold));
document.addEventListener("toggle", reachable, true);
unfold();
// The address keeps the section and the wall.
addEventListener("resize", () => {
  const hash = [sectionOf(location.hash), isWall() ? "wall=1" : ""].filter(Boolean).join("&");
  if (`#${hash}` !== (location.hash || "#")) history.replaceState(null, "", `#${hash}`);
});

/** What is shown: the first screen, and every section that is open, with its charts and tables. */
const isFolded = () => !document.querySelector("details.section[open]");
const shownRows = () => [...document.querySelectorAll("#overview, details[open] table.sortable")].flatMap((table, i) => [...(i ? [[]] : []), ...tableRows(table)]);
copying("comparison", shownRows, () => isFolded() ? document.getElementById("first") : document.querySelector("main"));
const charts = [...document.querySelectorAll("nav.contents a")];
shortcuts({
  n: () => step(1), p: () => step(-1), Escape: () => dim(null),
});
/** To the next section, which opens. */
function step(by) {
  const at = charts.findIndex(link => link.hash.slice(1) === sectionOf(location.hash));
  const next = charts[at < 0 ? (by > 0 ? 0 : charts.length - 1) : (at + by + charts.length) % charts.length];
  if (next) location.hash = next.hash + (isWall() ? "&wall=1" : "");
}
redraw(reachable);
// What fits on a page or so is printed; longer tables stay closed and say which file has them.
addEventListener("beforeprint", () => {
  for (const more of document.querySelectorAll("details")) if (more.classList.contains("section") || more.querySelectorAll("tbody tr").length <= 60) more.open = true;
});
