"use strict";
(async () => {
const $ = id => document.getElementById(id);
const ROW = 58;

function el(tag, fields = {}, ...children) {
  const { aria = {}, ...rest } = fields;
  const node = Object.assign(document.createElement(tag), rest);
  for (const [name, value] of Object.entries(aria)) node.setAttribute(name, value);
  node.append(...children.flat().filter(child => child !== null && child !== undefined && child !== ""));
  return node;
}

async function unpack(id) {
  const bytes = Uint8Array.from(atob($(id).textContent), c => c.charCodeAt(0));
  const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("deflate"));
  return JSON.parse(await new Response(stream).text());
}

// Views

function view() {
  const dialogs = !["", "#", "#overview"].includes(location.hash);
  $("overview").hidden = dialogs;
  $("dialogs").hidden = !dialogs;
  for (const [name, on] of [["to-overview", !dialogs], ["to-dialogs", dialogs]])
    on ? $(name).setAttribute("aria-current", "page") : $(name).removeAttribute("aria-current");
  return dialogs;
}
view();
if (!window.DecompressionStream) {
  $("dialog").append("This browser is too old for the dialogs: it needs one from 2023 or later.");
  return;
}
const { runs, entries, criteria, marks: given } = await unpack("data");
const several = runs.length > 1;
entries.forEach((entry, place) => {
  entry.place = place;
  entry.pairs = new Map(entry.drops.filter(d => d.scope === "pair").map(d => [d.turn, `${d.stage}: ${d.reason}`]));
});
const haystack = entry => entry.text ??= [
  entry.id, entry.title, ...entry.documents, ...entry.turns.flatMap(t => [t.query, t.answer]),
  ...entry.drops.map(d => d.text)].join("\n").toLowerCase();

// Marks: by run, dialog and turn (0: the whole dialog)

const store = run => `grounded-dialogs marks ${runs[run].fingerprint}`;
const marks = runs.map(() => new Map());
const asked = new Set();  // those of a file that was opened, which are to be marked
let unsaved = 0;
const key = (id, turn) => `${id}/${turn ?? 0}`;
const markOf = (entry, turn) => marks[entry.run].get(key(entry.id, turn));
const isSet = mark => mark && (mark.keep !== null || mark.note || Object.keys(mark.criteria).length);

function take(file) {
  const run = runs.findIndex(each => each.fingerprint === file?.run);
  if (!Array.isArray(file?.marks)) throw new Error("not a file of marks");
  if (run < 0) throw new Error(`marks of another run (${file.run}; this report is of ${runs.map(r => r.fingerprint).join(", ")})`);
  for (const mark of file.marks) {
    const turn = mark.turn ?? null;
    marks[run].set(key(mark.dialog_id, turn), { dialog_id: mark.dialog_id, turn, keep: mark.keep ?? null, criteria: { ...mark.criteria }, note: mark.note ?? "" });
    asked.add(`${run} ${key(mark.dialog_id, turn)}`);
  }
  $("annotator").value = file.annotator ?? "";
}

function setMark(entry, turn, change) {
  const mark = markOf(entry, turn) ?? { dialog_id: entry.id, turn, keep: null, criteria: {}, note: "" };
  marks[entry.run].set(key(entry.id, turn), Object.assign(mark, change));
  unsaved += 1;
  try {
    localStorage.setItem(store(entry.run), JSON.stringify({ run: runs[entry.run].fingerprint, annotator: $("annotator").value, marks: [...marks[entry.run].values()] }));
  } catch { /* a browser that keeps nothing for files: the note below says that they aren't saved */ }
  tellMarks();
  draw();
}

function tellMarks(message) {
  const count = marks.flatMap(of => [...of.values()]).filter(isSet).length;
  $("marked").textContent = message ?? (count ? `${count} marked${unsaved ? ", not saved to a file yet" : ""}` : "nothing marked yet");
}

function save(event) {
  event.preventDefault();
  const name = $("annotator").value.trim();
  if (!/^[A-Za-z0-9_.-]+$/.test(name)) {
    $("annotator").focus();
    return tellMarks("Give your name first: letters, digits, - _ .");
  }
  let saved = 0;
  const reads = [];
  runs.forEach((run, place) => {
    const all = [...marks[place].values()];
    if (!all.some(isSet)) return;
    saved += all.filter(isSet).length;
    const file = `marks-${name}${several ? `-${place + 1}` : ""}.json`;
    const url = URL.createObjectURL(new Blob([JSON.stringify({ run: run.fingerprint, annotator: name, marks: all }, null, 1) + "\n"], { type: "application/json" }));
    el("a", { href: url, download: file }).click();
    setTimeout(() => URL.revokeObjectURL(url), 60000);
    if (run.continues) reads.push(`${run.continues} marks=${file}`);
  });
  if (!saved) return tellMarks("There is nothing to save yet.");
  unsaved = 0;
  tellMarks(`${saved} marks saved.${reads.length ? ` The run reads them with: ${reads.join(" ; ")}` : ""}`);
}

async function open(event) {
  const [file] = event.target.files;
  try {
    take(JSON.parse(await file.text()));
    unsaved = 0;
    tellMarks(`opened ${file.name}`);
  } catch (error) {
    tellMarks(`${file.name}: ${error.message}`);
  }
  event.target.value = "";
  search();
  show(current);
}

for (const run of runs.keys()) {
  try {
    const kept = localStorage.getItem(store(run));
    if (kept) { take(JSON.parse(kept)); unsaved = 1; }
  } catch { /* none */ }
}
asked.clear();
if (given) take(given);

// Filters

const uniq = values => [...new Set(values)].filter(v => v !== null && v !== "").sort((a, b) => String(a).localeCompare(String(b), "en", { numeric: true }));
const turnsOf = all => all.flatMap(entry => entry.turns);
const labels = value => (value ?? "").split("+");
const FILTERS = [
  ["run", "run", several ? runs.map((run, place) => [place, run.name]) : [], (e, t, v) => e.run === +v, false],
  ["state", "kept or dropped", [["kept", "pairs kept"], ["pair", "pairs dropped"], ["dialog", "dialogs dropped"], ["early", "dialogs that ended early"], ["any", "with any drop"]],
    (e, t, v) => v === "any" ? e.drops.length > 0 : v === "dialog" ? !e.accepted : v === "early" ? e.ended !== "" : t !== null && t.kept === (v === "kept"), true],
  ["reason", "reason of a drop", uniq(entries.flatMap(e => e.drops.map(d => `${d.scope}: ${d.stage}: ${d.reason}`))),
    (e, t, v) => e.drops.some(d => `${d.scope}: ${d.stage}: ${d.reason}` === v && (t === null || d.turn === null || d.turn === t.turn || d.scope === "turn")), true],
  ["type", "question type", uniq(turnsOf(entries).flatMap(t => labels(t.question_type))), (e, t, v) => t !== null && labels(t.question_type).includes(v), true],
  ["multi", "multi-turn type", uniq(turnsOf(entries).flatMap(t => labels(t.multi_turn_type))), (e, t, v) => t !== null && labels(t.multi_turn_type).includes(v), true],
  ["turn", "turn", uniq(turnsOf(entries).map(t => t.turn)), (e, t, v) => t !== null && t.turn === +v, true],
  ["answerability", "answerability", uniq(turnsOf(entries).map(t => t.answerability)), (e, t, v) => t !== null && t.answerability === v, true],
  ["verdict", "verdict", uniq(turnsOf(entries).flatMap(t => t.verdicts.map(v => v.join(": ")))), (e, t, v) => t !== null && t.verdicts.some(x => x.join(": ") === v), true],
  ["user", "user", uniq(entries.map(e => e.user)), (e, t, v) => e.user === v, false],
  ["task", "task", uniq(entries.map(e => e.task)), (e, t, v) => e.task === v, false],
  ["mark", "my mark", [["asked", "to mark"], ["open", "still to mark"], ["none", "not marked"], ["kept", "kept"], ["rejected", "rejected"]], (e, t, v) => {
    const mark = markOf(e, t?.turn ?? null);
    const wanted = asked.has(`${e.run} ${key(e.id, t?.turn ?? null)}`);
    return v === "asked" ? wanted : v === "open" ? wanted && !isSet(mark) : v === "none" ? t !== null && !isSet(mark) : mark?.keep === (v === "kept");
  }, true],
];
for (const [name, title, values] of FILTERS)
  if (values.length > 1 || (values.length && name === "reason"))
    $("selects").append(el("select", { id: `f-${name}`, title, aria: { "aria-label": title } },
      el("option", { value: "" }, title), values.map(v => Array.isArray(v) ? el("option", { value: v[0] }, v[1]) : el("option", { value: v }, String(v)))));
$("selects").append(el("input", { id: "f-document", placeholder: "document", title: "a document's title or id", aria: { "aria-label": "document" } }));

let found = [];   // entries that match, with the turns that do
let hitTurns = new Map();
let current = null;

function search() {
  const words = $("search").value.toLowerCase().trim();
  const doc = $("f-document").value.toLowerCase().trim();
  const active = FILTERS.map(([name, , , test, ofTurn]) => ({ value: $(`f-${name}`)?.value ?? "", test, ofTurn })).filter(f => f.value !== "");
  for (const node of $("selects").children) node.classList.toggle("set", node.value !== "");
  const ofEntry = active.filter(f => !f.ofTurn), ofTurn = active.filter(f => f.ofTurn);
  hitTurns = new Map();
  let turns = 0;
  found = entries.filter(entry => {
    if (words && !haystack(entry).includes(words)) return false;
    if (doc && ![entry.title, ...entry.documents].some(d => d.toLowerCase().includes(doc))) return false;
    if (!ofEntry.every(f => f.test(entry, null, f.value))) return false;
    if (!ofTurn.length) { turns += entry.turns.length; return true; }
    const hits = entry.turns.filter(t => ofTurn.every(f => f.test(entry, t, f.value)));
    if (!hits.length && !ofTurn.every(f => f.test(entry, null, f.value))) return false;
    hitTurns.set(entry.place, new Set(hits.map(t => t.turn)));
    turns += hits.length;
    return true;
  });
  const accepted = found.filter(e => e.accepted).length;
  $("found").textContent = `${found.length.toLocaleString("en")} dialogs (${(found.length - accepted).toLocaleString("en")} dropped), ${turns.toLocaleString("en")} turns`;
  $("rows").style.height = `${found.length * ROW}px`;
  $("list").scrollTop = 0;
  draw();
}

// The list, of which only the rows in sight are in the document

function draw() {
  const list = $("list");
  const first = Math.max(0, Math.floor(list.scrollTop / ROW) - 5);
  const last = Math.min(found.length, Math.ceil((list.scrollTop + list.clientHeight) / ROW) + 5);
  const rows = [];
  for (let place = first; place < last; place++) rows.push(row(found[place], place));
  $("rows").replaceChildren(...(found.length ? rows : [el("p", { className: "empty" }, "Nothing matches.")]));
  const selected = found.indexOf(current);
  if (selected >= first && selected < last) list.setAttribute("aria-activedescendant", `row-${selected}`);
  else list.removeAttribute("aria-activedescendant");
}

function row(entry, place) {
  const hits = hitTurns.get(entry.place);
  const turn = entry.turns.find(t => hits?.has(t.turn)) ?? entry.turns[0];
  const whole = entry.drops.find(d => d.scope === "dialog") ?? entry.drops[0];
  const lost = entry.turns.filter(t => t.kept === false).length;
  const marked = [...marks[entry.run].values()].filter(m => m.dialog_id === entry.id && isSet(m));
  const kind = entry.accepted
    ? [`${entry.turns.length} turn${entry.turns.length === 1 ? "" : "s"}`, lost ? `${lost} dropped` : ""]
    : ["✗ dropped", whole ? `${whole.stage}: ${whole.reason}` : ""];
  const state = [...kind, marked.length ? `✎ ${marked.length}` : "", several ? runs[entry.run].name : "", entry.title].filter(Boolean).join(" · ");
  const node = el("div", { className: `row${entry.accepted ? "" : " dropped"}`, id: `row-${place}`,
    aria: { role: "option", "aria-selected": entry === current, "aria-posinset": place + 1, "aria-setsize": found.length } },
    el("span", {}, turn ? turn.query : whole?.text.trim() || entry.id), el("small", { title: state }, state));
  node.style.top = `${place * ROW}px`;
  node.addEventListener("click", () => show(entry));
  return node;
}

function move(by) {
  const place = Math.min(found.length - 1, Math.max(0, found.indexOf(current) + by));
  if (!found.length) return;
  const list = $("list");
  if (place * ROW < list.scrollTop) list.scrollTop = place * ROW;
  if ((place + 1) * ROW > list.scrollTop + list.clientHeight) list.scrollTop = (place + 1) * ROW - list.clientHeight;
  show(found[place]);
}

// One dialog

let shown = null;
let lit = null;

async function show(entry) {
  current = entry;
  if (!entry) return draw();
  const detail = entry.accepted ? await unpack(`d${entry.place}`) : { facts: [], turns: [], passages: [] };
  if (current !== entry) return;  // another was chosen meanwhile
  shown = detail;
  lit = null;
  const link = `#dialog=${several ? `${entry.run}:` : ""}${encodeURIComponent(entry.id)}`;
  history.replaceState(null, "", link);
  const facts = [...(several ? [["run", runs[entry.run].name]] : []), ...detail.facts, ...(entry.ended ? [["ended early", entry.ended]] : [])];
  const rest = entry.drops.filter(d => d.turn === null || !entry.turns.some(t => t.turn === d.turn));
  $("dialog").replaceChildren(
    el("h2", {}, entry.title || (entry.accepted ? "Dialog" : "Dropped dialog"), " ", el("a", { href: link, title: "link to this dialog" }, el("small", {}, entry.id))),
    el("p", { className: "facts" }, facts.map(([name, value]) => `${name}: ${value}`).join(" · ")),
    ...rest.map(drop),
    ...entry.turns.map((turn, place) => turnOf(entry, turn, detail.turns[place])),
    entry.accepted ? el("section", { className: "turn" }, el("h3", {}, "The dialog as a whole"), marking(entry, null)) : "");
  $("dialog").scrollTop = 0;
  passages();
  draw();
  $("dialog").querySelector(".turn:not(.miss)")?.scrollIntoView({ block: "nearest" });
}

function drop(each) {
  return el("div", { className: "drop" }, el("b", {}, `Dropped ${each.scope}`), ` · ${each.stage}: ${each.reason}`,
    each.text ? el("pre", {}, each.text) : "");
}

function turnOf(entry, turn, detail) {
  const hits = hitTurns.get(entry.place);
  const tag = (text, kind = "") => text ? el("span", { className: `tag ${kind}` }, text) : "";
  const types = [turn.question_type, turn.multi_turn_type && turn.multi_turn_type !== turn.question_type ? turn.multi_turn_type : "", turn.answerability];
  const reason = entry.pairs.get(turn.turn);
  const answer = el("button", { type: "button", className: "answer", aria: { "aria-pressed": false, "aria-label": `Answer of turn ${turn.turn}: show its evidence` } }, turn.answer || "(no answer)");
  answer.addEventListener("click", () => light(turn.turn, detail.evidence, answer));
  const name = place => place === null ? "a passage that is not in the dialog" : shown.passages[place].title || shown.passages[place].id;
  return el("section", { className: `turn${hits && hits.size && !hits.has(turn.turn) ? " miss" : ""}`, id: `turn-${turn.turn}` },
    el("div", { className: "tags" }, el("b", {}, `Turn ${turn.turn}`), types.map(t => tag(t)),
      turn.kept === null ? tag("given") : turn.kept ? tag("✓ kept", "kept") : tag(`✗ ${reason ?? "dropped"}`, "gone")),
    el("div", { className: "query" }, turn.query),
    detail.clean_query ? el("p", { className: "small" }, el("b", {}, "before slips: "), detail.clean_query) : "",
    detail.search_query ? el("p", { className: "small" }, el("b", {}, "search: "), detail.search_query) : "",
    detail.hits.length ? el("ol", { className: "hits" }, detail.hits.map(([place, rank, score, fresh]) => {
      const to = el("button", { type: "button", disabled: place === null }, name(place));
      to.addEventListener("click", () => $(`passage-${place}`).scrollIntoView({ block: "start" }));
      return el("li", {}, `${rank}. `, to, ` ${score.toPrecision(3)}`, fresh ? el("b", {}, " new") : "");
    })) : "",
    answer,
    detail.reasoning ? el("details", {}, el("summary", {}, "reasoning"), el("p", { className: "small" }, detail.reasoning)) : "",
    detail.other_answers.map(a => el("p", { className: "small" }, el("b", {}, "another reference: "), a)),
    detail.original_answer ? el("p", { className: "small" }, el("b", {}, "before a person edited it: "), detail.original_answer) : "",
    turn.verdicts.map(([judge, label], place) => {
      const [why, model, score, decides] = detail.reasons[place];
      return el("p", { className: "small" }, el("b", {}, `${judge}: ${label}`), score === null ? "" : ` (${score})`,
        model ? ` by ${model}` : "", decides ? "" : " (doesn't decide)", why ? ` – ${why}` : "");
    }),
    entry.drops.filter(d => d.turn === turn.turn).map(d => d.scope === "pair" ? "" : el("details", {}, el("summary", {}, `dropped ${d.scope}: ${d.stage}: ${d.reason}`), drop(d))),
    turn.kept === null ? "" : marking(entry, turn.turn));
}

let criteriaOpen = false;

function marking(entry, turn) {
  const mark = markOf(entry, turn);
  const choices = [["Keep", true], ["Reject", false]].map(([text, keep]) => {
    const button = el("button", { type: "button", aria: { "aria-pressed": mark?.keep === keep, "data-keep": keep } }, text);
    button.addEventListener("click", () => {
      const now = markOf(entry, turn)?.keep === keep ? null : keep;
      setMark(entry, turn, { keep: now });
      choices.forEach((each, place) => each.setAttribute("aria-pressed", now === (place === 0)));
    });
    return button;
  });
  const note = el("input", { type: "text", placeholder: "note", value: mark?.note ?? "", aria: { "aria-label": turn ? `Note on turn ${turn}` : "Note on the dialog" } });
  note.addEventListener("change", () => setMark(entry, turn, { note: note.value }));
  const asks = criteria.criteria.filter(c => (c.about === "dialog") === (turn === null));
  const rows = asks.map(criterion => {
    const select = el("select", { aria: { "data-criterion": criterion.name } }, el("option", { value: "" }, "–"),
      criterion.scale.map(level => el("option", { value: level.value, selected: mark?.criteria[criterion.name] === level.value }, level.meaning && level.meaning !== level.value ? `${level.value}: ${level.meaning}` : level.value)));
    select.addEventListener("change", () => {
      const values = { ...markOf(entry, turn)?.criteria };
      if (select.value) values[criterion.name] = select.value; else delete values[criterion.name];
      setMark(entry, turn, { criteria: values });
    });
    return el("label", { title: criterion.name }, el("span", {}, el("b", {}, `${criterion.name}: `), criterion.question), select);
  });
  const more = rows.length ? el("details", { className: "criteria", open: criteriaOpen || asked.size > 0 || Object.keys(mark?.criteria ?? {}).length > 0 }, el("summary", {}, `criteria (${criteria.name})`), rows) : "";
  return el("div", { className: "marks", aria: { role: "group", "aria-label": turn ? `Marks of turn ${turn}` : "Marks of the dialog" } }, choices, note, more);
}

// Evidence

function light(turn, evidence, button) {
  lit = lit?.turn === turn ? null : { turn, evidence };
  for (const each of $("dialog").querySelectorAll(".answer")) each.setAttribute("aria-pressed", each === button && lit !== null);
  passages();
  $("passages").querySelector("mark")?.scrollIntoView({ block: "center" });
}

function passages() {
  const spans = shown.passages.map(() => []);
  for (const [place, start, end] of lit?.evidence ?? []) if (place !== null) spans[place].push([start, end]);
  const said = !shown.passages.length ? "No passages." : !lit ? `${shown.passages.length} passages. A click on an answer lights up its evidence.`
    : lit.evidence.length ? `Evidence of turn ${lit.turn}: ${lit.evidence.length} sentence${lit.evidence.length === 1 ? "" : "s"}.` : `The answer of turn ${lit.turn} names no evidence.`;
  $("passages").replaceChildren(el("p", { className: "hint", aria: { role: "status" } }, said), ...shown.passages.map((passage, place) =>
    el("div", { className: `passage${spans[place].length ? " lit" : ""}`, id: `passage-${place}` },
      el("h3", {}, `${place + 1}. ${passage.title || passage.id} `, passage.title ? el("small", {}, passage.id) : ""),
      passage.url ? el("small", { className: "hint" }, passage.url) : "",
      el("p", {}, highlighted(passage.text, spans[place])))));
}

// Offsets count code points, and JavaScript's strings are made of UTF-16 units.
function highlighted(text, spans) {
  if (!spans.length) return text;
  const points = Array.from(text), parts = [];
  let at = 0;
  for (const [start, end] of spans.sort((a, b) => a[0] - b[0])) {
    const from = Math.max(at, start);
    if (from >= end) continue;
    parts.push(points.slice(at, from).join(""), el("mark", {}, points.slice(from, end).join("")));
    at = end;
  }
  return [...parts, points.slice(at).join("")];
}

// Events

let waiting = 0;
$("filters").addEventListener("input", () => { clearTimeout(waiting); waiting = setTimeout(search, 80); });
$("filters").addEventListener("reset", () => setTimeout(search));
$("filters").addEventListener("submit", event => { event.preventDefault(); clearTimeout(waiting); search(); $("list").focus(); });
$("list").addEventListener("scroll", () => requestAnimationFrame(draw));
$("list").addEventListener("keydown", event => {
  const page = Math.max(1, Math.floor($("list").clientHeight / ROW) - 1);
  const by = { ArrowDown: 1, ArrowUp: -1, PageDown: page, PageUp: -page, Home: -Infinity, End: Infinity }[event.key];
  if (by !== undefined) { event.preventDefault(); move(by === Infinity ? found.length : by === -Infinity ? -found.length : by); }
  if (event.key === "Enter") $("dialog").focus();
});
$("marking").addEventListener("submit", save);
$("open").addEventListener("change", open);
document.addEventListener("keydown", event => {
  if (event.ctrlKey || event.metaKey || event.altKey || event.target.closest("input, select, textarea")) return;
  if (event.key === "/") { location.hash = "#dialogs"; go(); event.preventDefault(); $("search").focus(); }
  if (event.key === "j" || event.key === "k") { if (!$("dialogs").hidden) move(event.key === "j" ? 1 : -1); }
});
document.addEventListener("toggle", event => { if (event.target.className === "criteria") criteriaOpen = event.target.open; }, true);
addEventListener("resize", draw);
addEventListener("beforeunload", event => { if (unsaved) event.preventDefault(); });
addEventListener("hashchange", go);

function go() {
  if (!view()) return;
  const [, run, id] = location.hash.match(/^#dialog=(?:(\d+):)?(.*)$/) ?? [];
  let wanted = id === undefined ? current : entries.find(e => e.id === decodeURIComponent(id) && e.run === +(run ?? 0));
  if (id !== undefined && !wanted) $("dialog").replaceChildren(el("p", { className: "empty" }, "This report has no such dialog."));
  else if (wanted !== current || !shown) show(wanted ?? found[0] ?? null).then(() => { const place = found.indexOf(current); if (place * ROW > $("list").clientHeight) $("list").scrollTop = place * ROW; });
  draw();
}

if (asked.size && $("f-mark")) $("f-mark").value = "asked";
tellMarks();
search();
if (asked.size && !location.hash) location.hash = "#dialogs";
go();
document.documentElement.dataset.ready = "yes";
})();
