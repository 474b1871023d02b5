// Values on hovering: the titles of points, shown at once and on touch too.
const tip = el("div", { id: "tip", role: "status", hidden: true });
document.body.append(tip);
for (const title of document.querySelectorAll("figure svg title")) {
  title.parentNode.dataset.tip = title.textContent;
  title.remove();
}
function showTip(event) {
  const point = event.target.closest?.("[data-tip]");
  tip.hidden = !point;
  if (!point) return;
  tip.textContent = point.dataset.tip;
  const box = tip.getBoundingClientRect();
  tip.style.left = Math.max(4, Math.min(event.clientX + 12, innerWidth - box.width - 4)) + "px";
  tip.style.top = Math.max(4, event.clientY - box.height - 10) + "px";
}
addEventListener("pointermove", showTip);
addEventListener("pointerdown", showTip);

// Tables sort by a click on a column's name: numbers by value, the rest by the alphabet.
for (const table of document.querySelectorAll("table.sortable")) {
  const heads = [...table.tHead.rows[0].cells];
  heads.forEach((head, column) => {
    head.firstElementChild.addEventListener("click", () => {
      const isUp = head.getAttribute("aria-sort") !== "ascending";
      for (const other of heads) other.removeAttribute("aria-sort");
      head.setAttribute("aria-sort", isUp ? "ascending" : "descending");
      const key = row => row.cells[column].dataset.value ?? row.cells[column].textContent;
      const order = (a, b) => {
        const [x, y] = [key(a), key(b)];
        const numbers = x !== "" && y !== "" && !isNaN(x) && !isNaN(y);
        return (numbers ? x - y : String(x).localeCompare(String(y))) * (isUp ? 1 : -1);
      };
      const body = table.tBodies[0];
      body.append(...[...body.rows].sort(order));
    });
  });
}
// What fits on a page or so is printed; longer tables stay closed and say which file has them.
addEventListener("beforeprint", () => {
  for (const more of document.querySelectorAll("details")) if (more.querySelectorAll("tbody tr").length <= 60) more.open = true;
});
