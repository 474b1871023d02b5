function drawMatrix() {
  const rows = rowLabels().map(shownToken), columns = columnLabels().map(shownToken), narrow = frame.clientWidth < 500;
  const n = { rows: rows.length, columns: columns.length };
  const least = isWall() ? 22 : 13, barRoom = narrow ? 0 : 36 + 2.6 * Math.max(least, 14);
  const measure = size => {
    const most = narrow ? 84 : 13 * size, axis = size * 1.5;
    return { left: axis + widest(rows, size, most), top: axis + widest(columns, size, most) };
  };
  const fits = ({ left, top }) => [(frame.clientWidth - left - barRoom - 4) / n.columns, (tallest() - top - 8) / n.rows];
  // Cells fill the frame; letters grow with them. Everything fits at zoom 0, unless cells would become specks.
  let size = least, room = measure(size);
  for (const larger of [15, 16, 18, 20]) {
    if (larger <= least || Math.min(...fits(measure(larger))) < larger * 1.7) break;
    [size, room] = [larger, measure(larger)];
  }
  const { left, top } = room, [broadest, highest] = fits(room), most = isWall() ? 80 : 64;
  const cell = zoomed(Math.min(most, Math.max(highest, n.rows <= 60 ? least : 1.5)));
  // Broader than high where there is room, so that names of columns can be read.
  const wide = Math.max(zoomed(Math.min(most, broadest, 2.6 * cell)), Math.min(cell, 1.5));
  const [width, height] = stretch(left + wide * n.columns + barRoom + 4, top + cell * n.rows + 4);
  const isPen = context instanceof Pen;
  const [x, y] = [left - (isPen ? 0 : frame.scrollLeft), top - (isPen ? 0 : frame.scrollTop)];
  place = { left, top, cell, wide };
  context.save();
  context.beginPath();
  context.rect(left, top, width - left, height - top);
  context.clip();
  context.imageSmoothingEnabled = false;
  context.drawImage(picture, x, y, wide * n.columns, cell * n.rows);
  context.strokeStyle = theme("--line");
  context.strokeRect(x, y, wide * n.columns, cell * n.rows);
  cross(x, y, n.rows, n.columns);
  const digits = isWall() ? 22 : Math.max(11, Math.min(16, wide * 0.36, cell * 0.6));
  if (wide >= 2.2 * digits && cell >= 1.05 * digits) numbers(x, y, [width, height], digits);
  if (barRoom) colourBar(x + wide * n.columns + 16, y, Math.min(cell * n.rows, 220), Math.max(least, 14));
  context.restore();
  const name = axes();
  context.font = fontOf(Math.max(least, 14));
  context.fillStyle = theme("--muted");
  context.textAlign = "left";
  context.fillText(`${name[1]} →`, left, Math.max(least, 14));
  context.save();
  context.translate(Math.max(least, 14), top + Math.min(cell * n.rows, height - top));
  context.rotate(-Math.PI / 2);
  context.fillText(`← ${name[0]}`, 0, 0);
  context.restore();
  labels(rows, shown.row, cell, size, (label, i) => {
    const at = y + (i + 0.5) * cell;
    if (at < top - 2 || at > height) return;
    context.textAlign = "right";
    context.fillText(fit(label, left - size * 1.5 - 6), left - 5, at + size * 0.35);
  });
  labels(columns, shown.column, wide, size, (label, j) => {
    const at = x + (j + 0.5) * wide;
    if (at < left - 2 || at > width) return;
    context.save();
    context.translate(at + size * 0.35, top - 5);
    context.rotate(-Math.PI / 2);
    context.textAlign = "left";
    context.fillText(fit(label, top - size * 1.5 - 6), 0, 0);
    context.restore();
  });
}

/** Both texts as columns, and a line for each weight that is not hidden. */
function drawLines() {
  const rows = rowLabels().map(shownToken), columns = columnLabels().map(shownToken), size = isWall() ? 22 : 16;
  const pitch = zoomed(Math.min(44, Math.max(size * 1.4, (tallest() - 40) / Math.max(rows.length, columns.length)))), most = frame.clientWidth * 0.36;
  const head = size * 1.6, side = Math.max(widest(rows, size, most), widest(columns, size, most), 90);
  const gap = Math.max(90, Math.min(520, frame.clientWidth - 2 * side - 16));
  const [, height] = stretch(2 * side + gap, Math.max(rows.length, columns.length) * pitch + head + 8);
  const isPen = context instanceof Pen;
  const y = head - (isPen ? 0 : frame.scrollTop), middle = i => y + (i + 0.5) * pitch;
  place = { side, gap, pitch, head };
  const greatestWeight = strongest();
  // Without a token pointed at, only lines that stand out; with one, all of its lines that can be seen.
  const pointing = shown.row != null || shown.column != null;
  const least = Math.max(shown.least, pointing ? greatestWeight / 50 : Math.max(0.02, greatestWeight / 50)), visible = at => isPen || (at > -pitch && at < height + pitch);
  for (let i = 0; i < rows.length; i++) {
    if (shown.row != null && i !== shown.row) continue;
    for (let j = 0; j < columns.length; j++) {
      const weight = current.weights[i * current.columns + j];
      if (weight < least || (shown.row == null && shown.column != null && j !== shown.column)) continue;
      if (!visible(middle(i)) && !visible(middle(j))) continue;
      context.strokeStyle = `rgba(${theme("--weight")}, ${Math.min(1, 0.15 + weight / greatestWeight)})`;
      context.lineWidth = 0.5 + 6 * weight / greatestWeight;
      context.beginPath();
      context.moveTo(side, middle(i));
      context.bezierCurveTo(side + gap / 2, middle(i), side + gap / 2, middle(j), side + gap, middle(j));
      context.stroke();
    }
  }
  context.lineWidth = 1;
  context.font = fontOf(isWall() ? 22 : 14);
  context.fillStyle = theme("--muted");
  const name = axes();
  context.textAlign = "right";
  context.fillText(name[0], side - 5, y - 6);
  context.textAlign = "left";
  context.fillText(name[1], side + gap + 5, y - 6);
  labels(rows, shown.row, pitch, size, (label, i) => {
    if (!visible(middle(i))) return;
    context.textAlign = "right";
    context.fillText(fit(label, side - 8), side - 5, middle(i) + size * 0.35);
  });
  labels(columns, shown.column, pitch, size, (label, j) => {
    if (!visible(middle(j))) return;
    context.textAlign = "left";
    context.fillText(fit(label, side - 8), side + gap + 5, middle(j) + size * 0.35);
  });
}

/** The picture as SVG, whole, however far the frame was scrolled. */
canvas.shapes = () => {
  const screen = context, pen = context = new Pen();
  draw();
  context = screen;
  draw();
  return pen.drawn();
};
