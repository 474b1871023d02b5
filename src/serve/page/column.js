/** One model's part of the page: its request, its answer, and the token under the pointer. */
class Column {
  constructor(index, page) {
    Object.assign(this, { index, page, answer: null, untouched: null, fault: null, isPending: false, isGrowing: false, shown: 0,
      units: new Map(), hover: null, pointed: null, open: null, refocus: null });
    this.host = makeColumn(this);
  }

  get asked() { return asked.columns[this.index]; }
  get run() { return this.page.runs.find(run => run.name === this.asked.model); }
  /** The text as the model gets it: a sentence has no ends of lines, a text that is gone on with keeps every blank. */
  get q() { return this.run.is_text ? asked.q : asked.q.replace(/\s+/g, " ").trim(); }
  get isBusy() { return this.isPending || this.isGrowing; }

  /** What is looked at, as far as the answer has it. */
  look() {
    const views = viewsOf(this.answer), look = { ...this.asked };
    if (!views.includes(look.view)) look.view = views[0] ?? null;
    const has = fits => this.answer.maps.some(map => map.part === look.view && fits(map));
    if (!has(map => map.layer === look.layer)) look.layer = null;
    if (!has(map => map.head === look.head && (look.layer == null || map.layer === look.layer))) look.head = null;
    return look;
  }

  /** Requests the model's output, with and without the interventions; answers to older requests are dropped. */
  async ask() {
    this.aborter?.abort();
    this.stop();
    const aborter = this.aborter = new AbortController(), mine = this.asked;
    if (!this.run || !asked.q.trim()) return this.forget();
    const question = { model: mine.model, q: this.q, max_tokens: this.run.is_text ? asked.max : null };
    const touched = { ...question, prefix: mine.prefix, blank: mine.blank, without: mine.off };
    this.isPending = true;
    this.page.mark();
    try {
      const key = JSON.stringify(question);
      const untouched = this.kept?.key === key ? this.kept.answer : askAttention(question, aborter.signal);
      const [answer, plain] = await Promise.all([isTouched(mine) ? askAttention(touched, aborter.signal) : untouched, untouched]);
      if (aborter !== this.aborter) return;
      this.kept = { key, answer: plain };
      this.take(answer, plain);
    } catch (error) {
      // The other request of the pair is of no use now; its end is no fault.
      if (aborter !== this.aborter) return;
      aborter.abort();
      if (!(error instanceof Fault)) throw error;
      this.forget();
      this.fault = error;
    } finally {
      if (aborter === this.aborter) {
        this.isPending = false;
        this.page.mark();
      }
    }
  }

  forget() {
    Object.assign(this, { answer: null, fault: null, isPending: false, open: null });
    build(this);
    this.page.mark();
  }

  take(answer, untouched) {
    const old = this.answer;
    Object.assign(this, { answer, untouched, fault: null, isPending: false, hover: null, pointed: null });
    if (this.asked.at > answer.target.length) this.asked.at = null;
    if (this.asked.word > answer.source.length) this.asked.word = null;
    if (this.open > answer.target.length) this.open = null;
    const same = old?.model === answer.model ? old.target.findIndex((token, i) => token.id !== answer.target[i]?.id) : 0;
    build(this);
    this.grow(same < 0 ? old.target.length : same);
    this.page.answered(this);
  }

  /** Shows the target from token `from` on one by one; at once for readers who want no motion. */
  grow(from = 0) {
    this.stop();
    const n = this.answer.target.length;
    this.shown = matchMedia("(prefers-reduced-motion: reduce)").matches ? n : Math.min(from, n);
    const step = () => {
      this.isGrowing = this.shown < n;
      this.show();
      this.page.mark();
      if (this.isGrowing) this.timer = setTimeout(() => { this.shown += 1; step(); }, 120);
    };
    step();
  }

  stop() {
    clearTimeout(this.timer);
    this.isGrowing = false;
    if (this.answer) this.shown = this.answer.target.length;
  }

  /** The token whose weights are shown; none for those of all steps. */
  place(look) {
    if (this.isGrowing) return this.shown ? `t${this.shown - 1}` : null;
    if (this.hover ?? this.pointed) return this.hover ?? this.pointed;
    const isSource = look.view != null && isOfSource(look.view);
    const step = isSource ? this.asked.word : this.asked.at;
    if (step) return (isSource ? "s" : "t") + (step - 1);
    // What is kept is little else than ones: all steps at once would be one patch.
    const last = isSource ? this.answer.source.length : this.answer.target.length;
    return look.view && isMemory(look.view) ? (isSource ? "s" : "t") + (last - 1) : null;
  }

  show() {
    if (this.answer) show(this);
  }

  /** Looks at something else of the same answer. */
  change(change) {
    Object.assign(this.asked, change);
    this.stop();
    build(this);
    this.show();
    this.page.mark();
  }

  /** The step at the cursor moves; in views of the source, the source token. */
  move(by) {
    if (!this.answer) return;
    const isSource = isOfSource(this.look().view ?? "");
    const name = isSource ? "word" : "at", n = (isSource ? this.answer.source : this.answer.target).length;
    const old = this.asked[name] ?? (by > 0 ? 0 : n + 1);
    this.stop();
    this.pointed = null;
    this.asked[name] = Math.min(n, Math.max(1, old + by));
    if (this.open && !isSource) this.open = this.asked.at;
    drawChoices(this);
    this.show();
    this.page.mark();
  }

  /** The model continues from the tokens before step `at` and the chosen ones. */
  choose(at, ids) {
    Object.assign(this.asked, { prefix: [...this.answer.target.slice(0, at - 1).map(token => token.id), ...ids], at: Math.max(1, at - 1 + ids.length) });
    Object.assign(this, { open: null, refocus: `t${this.asked.at - 1}` });
    this.ask();
  }

  toggleHead(name) {
    if (!this.run.without.includes(name)) return;
    const { off } = this.asked;
    this.asked.off = off.includes(name) ? off.filter(other => other !== name) : [...off, name].sort();
    this.ask();
  }

  /** The source as it was before anything was blanked. */
  source() {
    const { source } = this.untouched;
    return source.length === this.answer.source.length ? source : this.answer.source;
  }
}
