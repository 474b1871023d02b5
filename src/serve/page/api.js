const byId = id => document.getElementById(id);

/** Something that a person should read: the server's own words where it has any. */
class Fault extends Error {
  constructor(message, status) {
    super(message);
    this.status = status;
  }
}

/** The server's token, kept until the tab is closed. */
const access = {
  get token() { return sessionStorage.getItem("lookback-token") ?? ""; },
  set token(token) { sessionStorage.setItem("lookback-token", token); },
};

/** The JSON that an endpoint answers. Paths are relative, so that a proxy may put the server into a folder. */
async function request(path, body, signal) {
  const headers = {};
  if (body) headers["Content-Type"] = "application/json";
  if (access.token) headers.Authorization = `Bearer ${access.token}`;
  let answer, value = null;
  try {
    answer = await fetch(path, { method: body ? "POST" : "GET", headers, body: body && JSON.stringify(body), signal });
    value = await answer.json();
  } catch (error) {
    if (error.name === "AbortError") throw error;
    if (!answer) throw new Fault("The server does not answer. Try again later.", 0);
  }
  if (!answer.ok) throw new Fault(value?.error ?? `The server answers with status ${answer.status}.`, answer.status);
  if (value == null) throw new Fault("The answer of the server cannot be read.", answer.status);
  return value;
}

/** What a model writes, with its attention; fields that say nothing are left out. */
function askAttention(question, signal) {
  const body = Object.fromEntries(Object.entries(question).filter(([, value]) => value != null && value.length !== 0));
  return request("attention", body, signal);
}

/** Opens the whole computation of a step in a new tab: a form, since the page is the answer to a POST. */
function openExplanation(fields) {
  const all = { ...fields, format: "html", ...(access.token && { api_key: access.token }) };
  const inputs = Object.entries(all).flatMap(([name, value]) => [value ?? []].flat().map(value => el("input", { type: "hidden", name, value })));
  const form = el("form", { method: "post", action: "explain", target: "_blank", hidden: true }, ...inputs);
  document.body.append(form);
  form.submit();
  form.remove();
}
