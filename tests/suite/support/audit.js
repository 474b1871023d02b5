// What a reader could stumble over on the page as it is: an array of sentences, empty if there is nothing.
(() => {
  const found = [], wall = document.documentElement.classList.contains("wall");
  const name = element => `${element.tagName.toLowerCase()}${element.id ? `#${element.id}` : ""}${element.className?.baseVal ?? element.className ? `.${String(element.className?.baseVal ?? element.className).replace(/ /g, ".")}` : ""}`;
  const colour = text => {
    if (text.startsWith("color(srgb")) { const [r, g, b, a = 1] = text.match(/[\d.e-]+/g).map(Number); return [255 * r, 255 * g, 255 * b, a]; }
    const [r, g, b, a = 1] = text.match(/[\d.e-]+/g)?.map(Number) ?? [0, 0, 0, 0];
    return [r, g, b, a];
  };
  const over = (top, under) => [0, 1, 2].map(i => top[3] * top[i] + (1 - top[3]) * under[i]).concat(1);
  const light = c => c.slice(0, 3).map(v => v / 255).map(v => v <= 0.03928 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4).reduce((sum, v, i) => sum + v * [0.2126, 0.7152, 0.0722][i], 0);
  const contrast = (a, b) => { const [high, low] = [light(a), light(b)].sort((x, y) => y - x); return (high + 0.05) / (low + 0.05); };
  const isSeen = element => element.checkVisibility({ checkOpacity: false, checkVisibilityCSS: true }) && !element.closest(wall ? ".visually-hidden, [hidden], #tip, header" : ".visually-hidden, [hidden], #tip");
  const groundOf = element => {
    const grounds = [];
    for (let at = element; at; at = at.parentElement) { grounds.push(colour(getComputedStyle(at).backgroundColor)); if (grounds.at(-1)[3] === 1) break; }
    return grounds.reverse().reduce((under, top) => over(top, under), [255, 255, 255, 1]);
  };
  const walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
  const told = new Set();
  while (walker.nextNode()) {
    const node = walker.currentNode, element = node.parentElement;
    if (!node.data.trim() || /^(SCRIPT|STYLE|TITLE|OPTION)$/.test(element.tagName) || !isSeen(element)) continue;
    const style = getComputedStyle(element), size = parseFloat(style.fontSize), isLarge = size >= 24 || (size >= 18.6 && style.fontWeight >= 700);
    const ink = colour(element instanceof SVGElement ? style.fill : style.color);
    let opacity = 1;
    for (let at = element; at; at = at.parentElement) opacity *= Number(getComputedStyle(at).opacity);
    const ratio = contrast(over([...ink.slice(0, 3), ink[3] * opacity], groundOf(element)), groundOf(element));
    if (ratio < (isLarge ? 3 : 4.5) && !element.closest(":disabled")) told.add(`contrast ${ratio.toFixed(2)} of ${name(element)} "${node.data.trim().slice(0, 20)}"`);
    const least = wall ? 21.9 : 11;
    // Text of a drawing is as large as the drawing makes it; the determinant is the same for rotated text.
    const { a, b, c, d } = element instanceof SVGElement ? element.getScreenCTM() : { a: 1, b: 0, c: 0, d: 1 };
    const drawn = Math.round(10 * size * Math.sqrt(Math.abs(a * d - b * c))) / 10;
    if (drawn < least && !element.closest("sub, sup")) told.add(`${drawn}px is small: ${name(element)} "${node.data.trim().slice(0, 20)}"`);
  }
  // What is written on a canvas is caught while it is painted once more: its size, and its colour beside what lies under its middle.
  const canvas = document.querySelector("canvas#canvas");
  if (canvas && isSeen(canvas)) {
    const { fillText } = CanvasRenderingContext2D.prototype;
    CanvasRenderingContext2D.prototype.fillText = function (text, x, y, ...rest) {
      if (this.canvas === canvas && text.trim()) {
        const [, bold, size] = this.font.match(/(bold |[67]00 )?([\d.]+)px/), { a, b, c, d, e, f } = this.getTransform(), { width } = this.measureText(text);
        const left = x - width * { left: 0, start: 0, center: 0.5, right: 1, end: 1 }[this.textAlign] + width / 2;
        const middle = y + size * { alphabetic: -0.35, middle: 0, top: 0.5, bottom: -0.5, hanging: 0.5 }[this.textBaseline];
        const [px, py] = [a * left + c * middle + e, b * left + d * middle + f];
        const isOnIt = px >= 0 && py >= 0 && px < canvas.width && py < canvas.height;
        const [r, g, bl, alpha] = isOnIt ? this.getImageData(px, py, 1, 1).data : [0, 0, 0, 0];
        const ground = over([r, g, bl, alpha / 255], groundOf(canvas)), probe = new Option().style;
        probe.color = this.fillStyle;
        const ink = colour(probe.color);
        const ratio = contrast(over([...ink.slice(0, 3), ink[3] * this.globalAlpha], ground), ground);
        const drawn = Math.round(10 * size * Math.sqrt(Math.abs(a * d - b * c)) * canvas.clientWidth / canvas.width) / 10;
        const isLarge = drawn >= 24 || (drawn >= 18.6 && bold);
        if (isOnIt && ratio < (isLarge ? 3 : 4.5)) told.add(`contrast ${ratio.toFixed(2)} of "${text.slice(0, 20)}" on the canvas`);
        if (isOnIt && drawn < (wall ? 21.9 : 11)) told.add(`${drawn}px is small: "${text.slice(0, 20)}" on the canvas`);
      }
      return fillText.call(this, text, x, y, ...rest);
    };
    draw();
    CanvasRenderingContext2D.prototype.fillText = fillText;
  }
  found.push(...told);
  const wide = document.documentElement.scrollWidth - innerWidth;
  if (wide > 0) found.push(`the page is ${wide}px wider than the window`);
  const isFocusable = element => element.tabIndex >= 0 && !element.disabled;
  for (const element of document.body.querySelectorAll("*")) {
    if (!isSeen(element)) continue;
    const style = getComputedStyle(element);
    const scrolls = /auto|scroll/.test(style.overflow + style.overflowX + style.overflowY) && (element.scrollWidth > element.clientWidth + 1 || element.scrollHeight > element.clientHeight + 1);
    if (scrolls && !isFocusable(element) && element.clientWidth > 0) found.push(`${name(element)} scrolls and cannot be focused`);
    const label = element.getAttribute("aria-label") ?? element.innerText?.trim() ?? "";
    if (element.tagName === "BUTTON" && !label && !element.title) found.push(`${name(element)} has no name`);
    if (/^(SELECT|INPUT)$/.test(element.tagName) && !element.labels?.length && !element.getAttribute("aria-label")) found.push(`${name(element)} has no label`);
    if (element.tagName === "CANVAS" && !element.getAttribute("aria-label") && element.getAttribute("aria-hidden") !== "true" && !element.closest("[role=img], [aria-hidden=true]")) found.push(`${name(element)} has no text`);
    if (element.tagName === "svg" && !element.getAttribute("aria-label") && element.getAttribute("aria-hidden") !== "true") found.push(`${name(element)} has no text`);
    if (element.onclick || element.getAttribute("role") === "button") if (!isFocusable(element)) found.push(`${name(element)} is clicked and cannot be focused`);
    if (element.tagName === "LI" && !/^(UL|OL|MENU)$/.test(element.parentElement.tagName)) found.push("a list item stands outside of a list");
  }
  const ids = [...document.querySelectorAll("[id]")].map(element => element.id);
  for (const id of new Set(ids.filter((id, i) => ids.indexOf(id) !== i))) found.push(`two elements have the id ${id}`);
  if (document.querySelectorAll("h1").length !== 1) found.push("there is not one h1");
  return found;
})()
