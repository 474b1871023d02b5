/** Numbers as text that spreadsheets take. */
const tsv = rows => rows.map(row => row.map(cell => String(cell ?? "").replace(/[\t\n]/g, " ")).join("\t")).join("\n") + "\n";

/** The rows of a table on the page. */
const tableRows = table => [...table.rows].map(row => [...row.cells].map(cell => cell.dataset.value ?? cell.innerText.trim()));

/** Elements become SVG: grounds, borders, texts, paths and painted pictures, where they are on the screen. */
function pictureOf(root) {
  // What is scrolled is shown from its beginning, whole.
  const scrolled = [root, ...root.querySelectorAll("*")].filter(e => e.scrollLeft || e.scrollTop).map(e => [e, e.scrollLeft, e.scrollTop]);
  for (const [element] of scrolled) element.scrollTo({ left: 0, top: 0, behavior: "instant" });
  const picture = paintedWhole(root);
  for (const [element, left, top] of scrolled) element.scrollTo({ left, top, behavior: "instant" });
  return picture;
}

function paintedWhole(root) {
  const origin = root.getBoundingClientRect(), parts = [];
  const extent = { width: origin.width, height: origin.height };
  const reach = (right, bottom) => { extent.width = Math.max(extent.width, right - origin.left); extent.height = Math.max(extent.height, bottom - origin.top); };
  const place = box => `x="${(box.left - origin.left).toFixed(1)}" y="${(box.top - origin.top).toFixed(1)}"`;
  const isClear = colour => !colour || colour === "transparent" || /, 0\)$/.test(colour);
  const text = (node, style) => {
    const range = document.createRange(), found = [...node.data.matchAll(/\S+/g)];
    for (const match of found) {
      range.setStart(node, match.index);
      range.setEnd(node, match.index + match[0].length);
      // A long word may go on in the next line.
      const boxes = [...range.getClientRects()], box = boxes[0];
      if (!box || box.width === 0) continue;
      reach(Math.max(...boxes.map(box => box.right)), Math.max(...boxes.map(box => box.bottom)));
      const width = boxes.reduce((sum, box) => sum + box.width, 0);
      reach(box.left + width, box.bottom);
      const size = parseFloat(style.fontSize);
      parts.push(`<text x="${(box.left - origin.left).toFixed(1)}" y="${(box.top - origin.top + box.height / 2 + size * 0.35).toFixed(1)}" fill="${style.color}" font-size="${size}" font-weight="${style.fontWeight}" font-style="${style.fontStyle}" font-family="${escaped(style.fontFamily)}" textLength="${width.toFixed(1)}">${escaped(match[0])}</text>`);
    }
  };
  const walk = element => {
    const style = getComputedStyle(element), box = element.getBoundingClientRect();
    if (style.display === "none" || style.visibility === "hidden" || element.matches(".visually-hidden, .controls")) return;
    // Of what is folded only its title is on the screen.
    if (element.parentElement instanceof HTMLDetailsElement && !element.parentElement.open && element.tagName !== "SUMMARY") return;
    if (element instanceof SVGSVGElement) { parts.push(drawing(element, box)); return; }
    if (box.width && !isClear(style.backgroundColor)) parts.push(`<rect ${place(box)} width="${box.width.toFixed(1)}" height="${box.height.toFixed(1)}" rx="${parseFloat(style.borderTopLeftRadius) || 0}" fill="${style.backgroundColor}"/>`);
    if (parseFloat(style.borderLeftWidth) && parseFloat(style.borderTopWidth)) parts.push(`<rect ${place(box)} width="${box.width.toFixed(1)}" height="${box.height.toFixed(1)}" rx="${parseFloat(style.borderTopLeftRadius) || 0}" fill="none" stroke="${style.borderLeftColor}"/>`);
    if (box.width) reach(box.right, box.bottom);
    if (element.shapes) {
      const { markup, width, height } = element.shapes();
      reach(box.left + width, box.top + height);
      parts.push(`<g transform="translate(${box.left - origin.left} ${box.top - origin.top})">${markup}</g>`);
      return;
    }
    if (element instanceof HTMLCanvasElement) {
      const image = element.width && element.height ? element.toDataURL() : "";
      parts.push(`<image ${place(box)} width="${box.width.toFixed(1)}" height="${box.height.toFixed(1)}" preserveAspectRatio="none" style="image-rendering:${style.imageRendering}" href="${image}"/>`);
      return;
    }
    for (const child of element.childNodes) {
      if (child.nodeType === Node.TEXT_NODE) text(child, style);
      else if (child.nodeType === Node.ELEMENT_NODE && !/^(SELECT|INPUT|OPTION)$/.test(child.tagName)) walk(child);
    }
  };
  const drawing = (element, box) => {
    const copy = element.cloneNode(true), [from, to] = [element, copy].map(svg => [...svg.querySelectorAll("*")]);
    from.forEach((part, i) => {
      const style = getComputedStyle(part);
      for (const name of ["fill", "stroke", "stroke-width", "stroke-opacity", "opacity", "font-size", "font-weight", "font-family", "stroke-linecap"]) to[i].setAttribute(name, style.getPropertyValue(name));
    });
    for (const [name, value] of Object.entries({ x: box.left - origin.left, y: box.top - origin.top, width: box.width, height: box.height })) copy.setAttribute(name, value);
    copy.setAttribute("xmlns", "http://www.w3.org/2000/svg");
    return new XMLSerializer().serializeToString(copy);
  };
  walk(root);
  const [w, h] = [extent.width, extent.height].map(Math.ceil);
  return `<svg xmlns="http://www.w3.org/2000/svg" width="${w}" height="${h}" viewBox="0 0 ${w} ${h}"><rect width="${w}" height="${h}" fill="${theme("--ground")}"/>${parts.join("")}</svg>`;
}

/** More pixels than these on a side of a canvas are refused by some browsers. */
const MOST_PIXELS = 16000;

/** An SVG as the bytes of a PNG, at twice its size if a canvas can be so large. */
async function pngOf(svg) {
  const image = new Image();
  image.src = `data:image/svg+xml;charset=utf-8,${encodeURIComponent(svg)}`;
  await image.decode();
  const scale = Math.min(2, MOST_PIXELS / Math.max(image.width, image.height));
  const canvas = el("canvas", { width: Math.floor(scale * image.width), height: Math.floor(scale * image.height) });
  canvas.getContext("2d").drawImage(image, 0, 0, canvas.width, canvas.height);
  return new Promise(done => canvas.toBlob(done, "image/png"));
}

function download(blob, name) {
  const link = el("a", { href: URL.createObjectURL(blob), download: name });
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 10000);
}

/** Text between marks of SVG, which knows no control characters. */
const escaped = text => text.replace(/[\u0000-\u0008\u000b\u000c\u000e-\u001f\ufffe\uffff]/g, "\ufffd").replace(/[&<>"]/g, c => `&#${c.charCodeAt(0)};`);

/** Writes to the clipboard; if that is refused, to a file. */
async function give(blob, name, kind) {
  const told = document.getElementById("told");
  try {
    if (kind === "PNG") await navigator.clipboard.write([new ClipboardItem({ "image/png": blob })]);
    else await navigator.clipboard.writeText(await blob.text());
    told.textContent = `copied as ${kind}`;
  } catch {
    download(blob, name);
    told.textContent = `saved as ${name}`;
  }
}

/** Buttons that copy what is seen: `rows` are its numbers, `root` the element to be drawn. */
function copying(name, rows, root) {
  const make = {
    TSV: async () => new Blob([tsv(await rows())], { type: "text/plain" }),
    SVG: async () => new Blob([pictureOf(root())], { type: "image/svg+xml" }),
    PNG: async () => pngOf(pictureOf(root())),
  };
  const button = kind => el("button", { type: "button", "data-copy": kind, title: `copy what is shown as ${kind}`,
    onclick: async () => {
      try { await give(await make[kind](), `${name}.${kind.toLowerCase()}`, kind); }
      catch (fault) { document.getElementById("told").textContent = `no ${kind} could be made: ${fault.message}`; }
    } }, kind);
  document.getElementById("tools").replaceChildren(el("span", { class: "small muted" }, "copy"), ...Object.keys(make).map(button),
    el("button", { type: "button", "data-wall": "", "aria-pressed": isWall(), title: "for a wall: large, without controls (f)", onclick: () => wall() }, "wall"),
    el("span", { id: "told", role: "status" }));
  return make;
}
