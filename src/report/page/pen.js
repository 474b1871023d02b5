/** A canvas' context that writes SVG: what is painted on the screen can be copied as shapes. */
class Pen {
  constructor() {
    Object.assign(this, { parts: [], stack: [], at: "", path: "", fillStyle: "#000", strokeStyle: "#000", lineWidth: 1, globalAlpha: 1, font: "12px sans-serif", textAlign: "left" });
    this.ruler = document.createElement("canvas").getContext("2d");
  }
  /** The markup, and how much room it takes where that is known. */
  drawn() { return { markup: this.parts.join(""), width: this.width ?? 0, height: this.height ?? 0 }; }
  save() { this.stack.push([this.at, this.globalAlpha]); }
  restore() { [this.at, this.globalAlpha] = this.stack.pop(); }
  translate(x, y) { this.at += `translate(${x} ${y})`; }
  rotate(angle) { this.at += `rotate(${angle * 180 / Math.PI})`; }
  // What a frame hides is in the copy: it has room.
  clip() {}
  setLineDash(lengths) { this.dash = lengths.join(" "); }
  beginPath() { this.path = ""; }
  rect() {}
  moveTo(x, y) { this.path += `M${x} ${y}`; }
  lineTo(x, y) { this.path += `L${x} ${y}`; }
  bezierCurveTo(...numbers) { this.path += `C${numbers.join(" ")}`; }
  arc(x, y, r) { this.path += `M${x - r} ${y}a${r} ${r} 0 1 0 ${2 * r} 0a${r} ${r} 0 1 0 ${-2 * r} 0`; }
  measureText(text) { this.ruler.font = this.font; return this.ruler.measureText(text); }
  add(markup) { this.parts.push(this.at ? `<g transform="${this.at}">${markup}</g>` : markup); }
  get look() { return `opacity="${this.globalAlpha}"`; }
  stroke() { this.add(`<path d="${this.path}" fill="none" stroke="${this.strokeStyle}" stroke-width="${this.lineWidth}" ${this.dash ? `stroke-dasharray="${this.dash}"` : ""} ${this.look}/>`); }
  fill() { this.add(`<path d="${this.path}" fill="${this.fillStyle}" ${this.look}/>`); }
  fillRect(x, y, w, h) { this.add(`<rect x="${x}" y="${y}" width="${w}" height="${h}" fill="${this.fillStyle}" ${this.look}/>`); }
  strokeRect(x, y, w, h) { this.add(`<rect x="${x}" y="${y}" width="${w}" height="${h}" fill="none" stroke="${this.strokeStyle}" stroke-width="${this.lineWidth}" ${this.look}/>`); }
  drawImage(picture, x, y, w, h) { this.add(`<image x="${x}" y="${y}" width="${w}" height="${h}" preserveAspectRatio="none" style="image-rendering:pixelated" href="${picture.toDataURL()}"/>`); }
  text(text, x, y, look) {
    const anchor = { left: "start", center: "middle", right: "end" }[this.textAlign];
    const [, bold, size, family] = this.font.match(/^(bold )?([\d.]+)px (.*)$/);
    this.add(`<text x="${x}" y="${y}" font-size="${size}" font-weight="${bold ? 700 : 400}" font-family="${escaped(family)}" text-anchor="${anchor}" ${look} ${this.look}>${escaped(text)}</text>`);
  }
  fillText(text, x, y) { this.text(text, x, y, `fill="${this.fillStyle}"`); }
  strokeText(text, x, y) { this.text(text, x, y, `fill="none" stroke="${this.strokeStyle}" stroke-width="${this.lineWidth}"`); }
}

/** Red, green and blue of #123456 or of rgb(1, 2, 3), from 0 to 255. */
function channels(colour) {
  if (!colour.startsWith("#")) return colour.match(/[\d.]+/g).slice(0, 3).map(Number);
  return [1, 3, 5].map(i => parseInt(colour.slice(i, i + 2), 16));
}
/** How light a colour is (WCAG 2). */
const lightness = colour => colour.map(part => part / 255).map(part => part <= 0.03928 ? part / 12.92 : ((part + 0.055) / 1.055) ** 2.4)
  .reduce((sum, part, i) => sum + part * [0.2126, 0.7152, 0.0722][i], 0);
/** `share` of one colour over another. */
const blend = (over, under, share) => over.map((part, i) => share * part + (1 - share) * under[i]);
/** Black or white, whichever is read more easily on a ground. */
const readable = ground => lightness(ground) > 0.179 ? "#000000" : "#ffffff";
