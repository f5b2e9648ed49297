"use strict";
const $ = id => document.getElementById(id);
function el(tag, fields = {}, ...children) {
  const { aria = {}, ...rest } = fields;
  const node = Object.assign(document.createElement(tag), /^(p|pre|h2|h3|span|small|button|option|input)$/.test(tag) ? { dir: "auto" } : {}, rest);
  for (const [name, value] of Object.entries(aria)) node.setAttribute(name, value);
  node.append(...children.flat().filter(child => child !== null && child !== undefined && child !== ""));
  return node;
}

// The marks on the runs of a report, each by dialog and turn (0: the whole dialog).
class Marks {
  // Begin with a given file of marks. What the browser kept is later, unless it was saved before the page had this file.
  constructor(runs, changed, given) {
    const maps = new Map(runs.map(run => [run.fingerprint, new Map()]));  // one for a run and its judged copy
    Object.assign(this, { runs, changed, of: runs.map(run => maps.get(run.fingerprint)), asked: new Set(), unsaved: 0, annotator: "", given: JSON.stringify(given) });
    if (given) this.take(given);
    const asked = new Set(this.asked);
    for (const run of runs) {
      try {
        const kept = JSON.parse(localStorage.getItem(this.store(run)));
        if (!kept || (kept.saved && given?.annotator && kept.given !== this.given)) continue;
        this.take(kept, true);
        if (!kept.saved) this.unsaved = 1;
      } catch { /* a browser that keeps nothing for files */ }
    }
    this.asked = asked;
  }

  static key = (id, turn) => `${id}/${turn ?? 0}`;
  static isSet = mark => Boolean(mark && (mark.keep !== null || mark.note || Object.keys(mark.criteria).length));
  static place = (entry, turn) => `${entry.run} ${Marks.key(entry.id, turn)}`;
  store = run => `grounded-dialogs marks ${run.fingerprint}`;
  get = (entry, turn) => this.of[entry.run].get(Marks.key(entry.id, turn));
  get count() { return [...new Set(this.of)].flatMap(each => [...each.values()]).filter(Marks.isSet).length; }
  ofDialog = entry => [...this.of[entry.run].values()].filter(mark => mark.dialog_id === entry.id && Marks.isSet(mark)).length;

  // Take over a file of marks; those it names are asked for. One that only asks, a sample's, replaces none.
  take(file, replaces = Boolean(file?.annotator)) {
    const run = this.runs.findIndex(each => each.fingerprint === file?.run);
    if (!Array.isArray(file?.marks)) throw new Error("not a file of marks");
    if (run < 0) throw new Error(`marks of another run (${file.run}; this report is of ${this.runs.map(each => each.fingerprint).join(", ")})`);
    for (const { dialog_id, turn = null, keep = null, criteria = {}, note = "" } of file.marks) {
      const key = Marks.key(dialog_id, turn);
      if (replaces || !this.of[run].has(key)) this.of[run].set(key, { dialog_id, turn, keep, criteria: { ...criteria }, note });
      this.asked.add(Marks.place({ run, id: dialog_id }, turn));
    }
    if (file.annotator) this.annotator = file.annotator;
  }

  file = (run, annotator) => ({ run: this.runs[run].fingerprint, annotator, marks: [...this.of[run].values()] });

  set(entry, turn, change) {
    const mark = this.get(entry, turn) ?? { dialog_id: entry.id, turn, keep: null, criteria: {}, note: "" };
    this.of[entry.run].set(Marks.key(entry.id, turn), Object.assign(mark, change));
    this.unsaved = 1;
    this.keep(entry.run);
    this.changed();
  }

  keep(run, saved = false) {
    try {
      localStorage.setItem(this.store(this.runs[run]), JSON.stringify({ ...this.file(run, this.annotator), saved, given: this.given }));
    } catch { /* as above: the page says that they aren't saved */ }
  }

  saved() {
    this.unsaved = 0;
    this.runs.forEach((_, run) => this.keep(run, true));
  }

  // Return the files to save, one for each run with marks: name, content, and the command that reads it.
  files(annotator) {
    this.annotator = annotator;
    return this.runs.map((run, place) => {
      const name = `marks-${annotator}${this.runs.length > 1 ? `-${place + 1}` : ""}.json`;
      const content = this.file(place, annotator);
      return { name, content, reads: run.continues ? `${run.continues} marks=${name}` : "" };
    }).filter((each, place) => this.of.indexOf(this.of[place]) === place && each.content.marks.some(Marks.isSet));
  }

  // Return the form that marks a turn, or the dialog.
  form(entry, turn, criteria) {
    const of = turn ? `turn ${turn}` : "the dialog", mark = () => this.get(entry, turn);
    const choices = [["Keep", true], ["Reject", false]].map(([text, keep]) => {
      const button = el("button", { type: "button", aria: { "aria-pressed": mark()?.keep === keep, "data-keep": keep } }, text);
      button.addEventListener("click", () => {
        this.set(entry, turn, { keep: mark()?.keep === keep ? null : keep });
        choices.forEach((each, place) => each.setAttribute("aria-pressed", mark().keep === (place === 0)));
      });
      return button;
    });
    const note = el("input", { type: "text", placeholder: "note", value: mark()?.note ?? "", aria: { "aria-label": `Note on ${of}` } });
    note.addEventListener("input", () => this.set(entry, turn, { note: note.value }));
    const rows = criteria.criteria.filter(each => (each.about === "dialog") === (turn === null)).map(({ name, question, scale }) => {
      const select = el("select", { aria: { "data-criterion": name } }, el("option", { value: "" }, "–"), scale.map(({ value, meaning }) =>
        el("option", { value, selected: mark()?.criteria[name] === value }, meaning && meaning !== value ? `${value}: ${meaning}` : value)));
      select.addEventListener("change", () => {
        const { [name]: _, ...others } = mark()?.criteria ?? {};
        this.set(entry, turn, { criteria: select.value ? { ...others, [name]: select.value } : others });
      });
      return el("label", { title: name }, el("span", {}, el("b", {}, `${name}: `), question), select);
    });
    const more = el("details", { className: "criteria", open: this.open || this.asked.size > 0 || Object.keys(mark()?.criteria ?? {}).length > 0 }, el("summary", {}, `criteria (${criteria.name})`), rows);
    more.addEventListener("toggle", () => { this.open = more.open; });
    return el("div", { className: "marks", aria: { role: "group", "aria-label": `Marks of ${of}` } }, choices, note, rows.length ? more : "");
  }
}
