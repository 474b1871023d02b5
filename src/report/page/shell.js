const data = JSON.parse(document.getElementById("data").textContent);

/** An element: el("button", { class: "x", onclick: f }, "text", child). Strings become text, never markup. */
function el(tag, attributes = {}, ...children) {
  const element = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) {
    if (name.startsWith("on")) element.addEventListener(name.slice(2), value);
    else if (name.startsWith("aria-")) { if (value != null) element.setAttribute(name, String(value)); }
    else if (value === true) element.setAttribute(name, "");
    else if (value !== false && value != null) element.setAttribute(name, value);
  }
  element.append(...children.filter(child => child != null));
  return element;
}

/** A colour of the shell, such as theme("--ink"), as it is in the reader's light or dark theme. */
function theme(name) {
  return getComputedStyle(document.documentElement).getPropertyValue(name).trim();
}

/** Calls draw now and whenever the theme or the width of the window changes. */
function redraw(draw) {
  let pending = false;
  const soon = () => {
    if (pending) return;
    pending = true;
    requestAnimationFrame(() => { pending = false; draw(); });
  };
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", soon);
  addEventListener("resize", soon);
  // What is painted is painted once more for paper, which is light.
  const paper = isPaper => () => { document.documentElement.toggleAttribute("data-paper", isPaper); draw(); };
  addEventListener("beforeprint", paper(true));
  addEventListener("afterprint", paper(false));
  draw();
  return soon;
}

/** Whether an element is a field for text, which keeps its keys. A box, a list or a slider leaves them to the page. */
function isTextField({ tagName, type }) {
  return tagName === "TEXTAREA" || (tagName === "INPUT" && !/^(checkbox|radio|range|button)$/.test(type));
}

/** Keys to functions, wherever the focus is, except in a field for text. */
function keys(handlers) {
  addEventListener("keydown", event => {
    if (event.ctrlKey || event.metaKey || event.altKey || event.isComposing || isTextField(event.target)) return;
    const handler = handlers[event.key];
    if (handler) { event.preventDefault(); handler(event); }
  });
}
