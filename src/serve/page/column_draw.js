/** Whether the lines of all steps at once would be too many to follow one. */
const isCrowded = ({ map }) => map != null && map.n_rows > 40;

/** How to find a button again after it was drawn anew. */
function selectorOf(button) {
  const name = ["head", "switch", "layer", "view"].find(name => button.dataset[name] != null);
  return name ? `button[data-${name}="${CSS.escape(button.dataset[name])}"]` : null;
}

/** The elements of a column, and what happens in them. */
function makeColumn(column) {
  const name = `reading-${column.index + 1}`;
  const host = el("section", { "data-column": column.index + 1, hidden: true },
    el("div", { class: "about" }),
    el("div", { class: "toolbar views", role: "group", "aria-label": "what looks at what" }),
    el("div", { class: "board" },
      el("div", { class: "left" },
        el("div", { class: "stage" }, svg("svg", { "aria-hidden": true, preserveAspectRatio: "none" }),
          el("p", { class: "side" }), el("div", { class: "tokens", "data-side": "source", role: "group", "aria-label": "source" }),
          el("div", { class: "tokens", "data-side": "target", role: "group", "aria-label": "target" }), el("p", { class: "side" })),
        el("p", { class: "caption muted" }),
        el("p", { class: "reading", id: name }),
        el("div", { class: "panel choices screen-only", hidden: true }),
        el("div", { class: "change", hidden: true }),
        el("ul", { class: "notes", hidden: true })),
      el("div", { class: "heads" })));
  const stage = host.querySelector(".stage");
  const placeOf = event => event.target.closest("[data-token]")?.dataset.place ?? null;
  const hover = event => {
    if (event.pointerType !== "mouse") return;
    const place = event.type === "pointerleave" ? null : placeOf(event);
    if (place !== column.hover) { column.hover = place; column.show(); }
  };
  stage.addEventListener("pointerover", hover);
  stage.addEventListener("pointerleave", hover);
  stage.addEventListener("focusin", event => {
    const place = placeOf(event);
    if (!place) return;
    if (place[0] === "t") { column.asked.at = Number(place.slice(1)) + 1; column.pointed = null; }
    else if (isOfSource(column.look().view ?? "")) column.asked.word = Number(place.slice(1)) + 1;
    // A click has blanked the token, so its own lines are not shown.
    else column.pointed = event.target.matches(":focus-visible") ? place : null;
    column.show();
    column.page.mark();
  });
  stage.addEventListener("focusout", () => { if (column.pointed) { column.pointed = null; column.show(); } });
  stage.addEventListener("click", event => {
    const place = placeOf(event), position = place && Number(place.slice(1)) + 1;
    if (place?.[0] === "s") column.page.blank(column, position);
    if (place?.[0] !== "t") return;
    // Not every browser gives the focus to a button that is clicked.
    column.asked.at = position;
    column.open = column.open === position ? null : position;
    column.stop();
    drawChoices(column);
    column.show();
    column.page.mark();
  });
  new ResizeObserver(() => column.show()).observe(stage);
  return host;
}

/** Draws what changes with the answer or with what is chosen of it; `show` draws what changes with the pointer. */
function build(column) {
  const { host, answer, run, units } = column;
  const again = host.contains(document.activeElement) ? selectorOf(document.activeElement) : null;
  column.pointed = null;
  const find = name => host.querySelector(name);
  host.hidden = !run || !(answer || isTouched(column.asked)) || !asked.q.trim();
  if (host.hidden) return;
  const number = run.parameters?.toLocaleString("en");
  find(".about").replaceChildren(el("h2", {}, run.name),
    el("span", { class: "muted" }, [run.model, number && `${number} parameters`].filter(part => part).join("; ")));
  host.setAttribute("aria-label", `model ${run.name}`);
  for (const name of [".views", ".stage", ".caption", ".reading", ".heads"]) find(name).hidden = !answer;
  drawChange(column);
  if (!answer) { drawChoices(column); return; }

  const look = column.look(), { blank, off } = column.asked;
  column.map = meanOf(answer, look);
  const views = viewsOf(answer);
  find(".views").hidden = views.length < 2;
  find(".views").replaceChildren(...views.map(view => el("button", { type: "button", "data-view": view, "aria-pressed": view === look.view,
    onclick: () => column.change({ view, layer: null, head: null }) }, viewName(view, answer.is_text))));
  const stage = find(".stage");
  stage.className = answer.is_text ? "stage text" : "stage";
  stage.classList.toggle("short", answer.source.length + (answer.is_text ? answer.target.length : 0) <= 12);
  stage.dataset.view = look.view ?? "cross";
  const names = answer.is_text ? ["beginning", "what the model writes"] : ["source", "target"].map(side => titled(side, language(run, side)));
  stage.querySelectorAll(".side").forEach((side, i) => { side.textContent = names[i]; });

  // The focus goes back to where it was, once that token is shown.
  if (stage.contains(document.activeElement)) column.refocus ??= document.activeElement.dataset.place;
  units.clear();
  const source = column.source(), [sourceRow, targetRow] = stage.querySelectorAll(".tokens");
  const target = answer.target.map(({ token }) => token);
  // Of a text, both are one sequence with the same marks.
  const before = answer.is_text ? spaces([...source, ...target]) : [...spaces(source), ...spaces(target)];
  drawTokens(sourceRow, "source", source, before.slice(0, source.length), units);
  drawTokens(targetRow, "target", target, before.slice(source.length), units);
  if (!answer.is_text && column.map?.columns.includes("t-1")) targetRow.prepend(drawStart(units));
  if (!answer.is_complete) targetRow.append(el("span", { class: "unit start" }, el("span", { class: "token special", title: "the model had not ended here" }, "…")));
  for (const [place, unit] of units) describeToken(column, place, unit.firstChild);

  find(".caption").textContent = caption(answer, look);
  drawHeads(find(".heads"), answer, { ...look, off }, run.without, {
    choose: ({ layer, head }) => column.change({ layer, head }),
    toggle: name => column.toggleHead(name),
  });
  if (again) host.querySelector(again)?.focus({ preventScroll: true });
  drawChoices(column);
  const notes = find(".notes");
  notes.hidden = !answer.notes?.length;
  notes.replaceChildren(...(answer.notes ?? []).map(note => el("li", {}, note)));
}

/** What a token's button says to those who cannot see it, and how it is marked. */
function describeToken(column, place, button) {
  if (button.tagName !== "BUTTON") return;
  const i = Number(place.slice(1));
  button.dataset.place = place;
  button.setAttribute("aria-describedby", `reading-${column.index + 1}`);
  if (place[0] === "s") {
    const isBlank = column.asked.blank.includes(i + 1), isEnd = !column.answer.is_text && i + 1 === column.answer.source.length;
    if (isEnd) button.setAttribute("aria-disabled", true);
    else button.setAttribute("aria-pressed", isBlank);
    button.setAttribute("aria-label", `${button.textContent}, source token ${i + 1}${isBlank ? ", blanked" : ""}`);
    button.classList.toggle("blanked", isBlank);
    if (isBlank) button.title += ": blanked, the model sees <unk>";
    return;
  }
  const token = column.answer.target[i], isChanged = column.marks?.[0][i] === true;
  button.setAttribute("aria-expanded", column.open === i + 1);
  button.setAttribute("aria-label", `${button.textContent}, step ${i + 1}${token.given ? ", given" : ""}${isChanged ? ", differs" : ""}`);
  button.classList.toggle("given", token.given === true);
  button.classList.toggle("changed", isChanged);
  if (token.given) button.title += ": given";
}

/** Draws what changes with the pointer and with time: lines, shares, what is dim, and the words below. */
function show(column) {
  const { host, answer, map, units } = column;
  const stage = host.querySelector(".stage"), look = column.look(), place = column.place(look);
  if (!stage.clientWidth) return;
  const found = map && place ? weightsOf(map, place) : null;
  const shares = new Map(found?.weights);
  const isLater = place => place[0] === "t" && Number(place.slice(1)) >= column.shown;
  for (const [other, unit] of units) {
    const weight = shares.get(other) ?? 0;
    unit.classList.toggle("later", isLater(other));
    unit.classList.toggle("now", other === place);
    unit.classList.toggle("dim", found != null && other !== place && weight < 0.05);
    unit.firstChild.style.setProperty("--share", (0.5 * weight).toFixed(3));
    unit.lastChild.textContent = weight >= 0.0095 ? percent(weight) : "";
    if (unit.firstChild.tagName === "BUTTON") unit.firstChild.tabIndex = other === place ? 0 : -1;
  }
  // One token of each row can be reached with the tabulator; the arrow keys go on from there.
  for (const row of stage.querySelectorAll(".tokens")) {
    if (!row.querySelector("[tabindex='0']")) row.querySelector("[data-token]")?.setAttribute("tabindex", 0);
  }
  const links = found ? found.weights.filter(([, weight]) => weight >= 0.01).map(([other, weight]) => [...(found.isSeen ? [other, place] : [place, other]), weight, false])
    : map && !column.isGrowing && !isCrowded(column) ? map.rows.flatMap((from, i) => map.columns.map((to, j) => [from, to, map.weights[i * map.n_columns + j], true]))
      .filter(([, , weight]) => weight >= 0.1) : [];
  drawLinks(stage, stage.querySelector("svg"), units, links.filter(([from, to]) => !isLater(from) && !isLater(to)), isOfSource(look.view ?? "") ? -1 : 1);
  host.querySelector(".reading").replaceChildren(...reading(column, look, place, found));
  const wanted = column.refocus;
  if (wanted && isLater(wanted)) return;
  column.refocus = null;
  if (wanted && (document.activeElement === document.body || host.contains(document.activeElement))) units.get(wanted)?.firstChild.focus({ preventScroll: true });
}

function caption(answer, look) {
  if (look.view) return `Lines: ${viewName(look.view, answer.is_text)}, ${describeMaps(answer, look)}.`;
  return answer.is_text ? "No attention: the state of the model keeps the text." : "No attention: the decoder sees one vector of the whole source.";
}

/** In words, what the token that is pointed at looks at. */
function reading(column, look, place, found) {
  const { answer } = column;
  const wordAt = place => place === "t-1" ? "<s>" : place[0] === "s" ? column.source()[place.slice(1)] : answer.target[place.slice(1)].token;
  const word = place => el("b", {}, el("bdi", {}, bare(wordAt(place))));
  if (!place) return [look.view ? "Point at a token to see its lines. " : "",
    `Click a ${answer.is_text ? "token that the model wrote" : "target token"} to choose another; click a ${answer.is_text ? "token of the beginning" : "source token"} to blank it.`,
    isCrowded(column) ? " There are too many tokens to show the lines of all at once." : ""];
  const parts = [word(place)], i = Number(place.slice(1));
  if (place[0] === "t") {
    const { given, probability } = answer.target[i];
    parts.push(` is step ${i + 1} of ${answer.target.length}${given ? ", given" : ""}, with probability ${percent(probability)}. `);
  }
  const most = found?.weights.filter(([, weight]) => weight >= 0.0095).sort((a, b) => b[1] - a[1]).slice(0, 4) ?? [];
  if (most.length) {
    const subject = place[0] === "t" && !isMemory(look.view) ? "It" : "";
    const verb = isMemory(look.view) ? (found.isSeen ? "Kept of it at: " : "Kept of what was read: ") : found.isSeen ? `${subject} is looked at by ` : `${subject} looks at `;
    parts.push(verb, ...most.flatMap(([other, weight], k) => [k ? ", " : "", other === place ? "itself" : word(other), ` ${percent(weight)}`]), ". ");
  }
  if (place[0] === "t" && !column.isGrowing) {
    const heads = look.view === (answer.is_text ? "decoder" : "cross") ? { layer: look.layer, head: look.head } : {};
    parts.push(el("button", { type: "button", class: "link screen-only", "data-explain": i + 1, title: "opens a new tab",
      onclick: () => openExplanation({ model: answer.model, q: column.q, ids: answer.target.map(token => token.id), step: i + 1, without: column.asked.off, ...heads }) }, "every number of this word"),
    column.asked.blank.length ? el("span", { class: "muted screen-only" }, " (with nothing blanked)") : "");
  }
  return parts;
}
