"use strict";
(async () => {
const ROW = 58;
const count = (number, noun) => `${number.toLocaleString("en")} ${noun}${number === 1 ? "" : "s"}`;

async function unpack(id) {
  const binary = atob($(id).textContent);
  const bytes = new Uint8Array(binary.length);
  for (let place = 0; place < binary.length; place++) bytes[place] = binary.charCodeAt(place);
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

const marks = new Marks(runs, () => { tellMarks(); draw(); }, given);
// Marks of nobody are a sample's: nothing else is to be marked.
const only = given && !given.annotator ? new Set(marks.asked) : null;
const form = (entry, turn) => only && !only.has(Marks.place(entry, turn)) ? null : marks.form(entry, turn, criteria);
$("annotator").value = marks.annotator;
$("annotator").addEventListener("change", () => { marks.annotator = $("annotator").value.trim(); });

function tellMarks(message) {
  const of = only ? ` of ${only.size}` : "";
  $("marked").textContent = message ?? (marks.count ? `${marks.count}${of} marked${marks.unsaved ? ", not saved to a file yet" : ""}` : "nothing marked yet");
}

function save(event) {
  event.preventDefault();
  const name = $("annotator").value.trim();
  if (!name || !$("annotator").checkValidity()) {
    $("annotator").focus();
    return tellMarks("Give your name first, without spaces: letters, digits, - _ . @ +");
  }
  const files = marks.files(name);
  if (!files.length) return tellMarks("There is nothing to save yet.");
  for (const file of files) {
    const url = URL.createObjectURL(new Blob([`${JSON.stringify(file.content, null, 1)}\n`], { type: "application/json" }));
    el("a", { href: url, download: file.name }).click();
    setTimeout(() => URL.revokeObjectURL(url), 60000);
  }
  marks.saved();
  const reads = files.map(file => file.reads).filter(Boolean);
  tellMarks(`${count(marks.count, "mark")} saved.${reads.length ? ` The run reads them with: ${reads.join(" ; ")}` : ""}`);
}

async function open(event) {
  const [file] = event.target.files;
  try {
    marks.take(JSON.parse(await file.text()));
    $("annotator").value = marks.annotator;
    tellMarks(`opened ${file.name}`);
  } catch (error) {
    tellMarks(`${file.name}: ${error.message}`);
  }
  event.target.value = "";
  search();
  show(current);
}

// Filters

const differ = entries.some(e => e.user);  // else all users are the plain one
const labels = value => (value ?? "").split("+");
const lossOf = d => `${d.scope}: ${d.stage}: ${d.reason}`;
const markOf = (e, t) => {
  const mark = marks.get(e, t?.turn), isSet = Marks.isSet(mark), wanted = marks.asked.has(Marks.place(e, t?.turn));
  return [wanted && "asked", wanted && !isSet && "open", t && !isSet && "none", mark?.keep === true && "kept", mark?.keep === false && "rejected"];
};
// Name, title, the values that an entry (without a turn) or one of its turns has, whether it narrows turns, and the
// values to choose from with their texts: by default all that there are.
const FILTERS = [
  ["run", "run", e => [`${e.run}`], false, several ? runs.map((run, place) => [place, run.name]) : []],
  ["state", "state", (e, t) => [t && (t.kept ? "kept" : t.kept === false && "pair"), !e.accepted && "dialog", e.ended && "early", e.drops.length && "any", e.full && "full"], true,
    [["kept", "pairs kept"], ["pair", "pairs dropped"], ["dialog", "dialogs dropped"], ["early", "dialogs that ended early"], ["any", "with any drop"], ...(entries.some(e => e.accepted && !e.full) ? [["full", "shown in full"]] : [])]],
  ["reason", "drop reason", (e, t) => e.drops.filter(d => !t || d.turn === null || d.turn === t.turn || d.scope === "turn").map(lossOf), true],
  ["type", "type", (e, t) => labels(t?.question_type), true],
  ["multi", "multi-turn", (e, t) => labels(t?.multi_turn_type), true],
  ["turn", "turn", (e, t) => [t && `${t.turn}`], true],
  ["answerability", "answerability", (e, t) => [t?.answerability], true],
  ["difficulty", "difficulty", (e, t) => [t?.difficulty], true],
  ["verdict", "verdict", (e, t) => t ? t.verdicts.map(verdict => verdict.join(": ")) : [], true],
  ["user", "user", e => [e.user || (differ && e.accepted && "plain")], false],
  ["task", "task", e => [e.task], false],
  ["mark", "my mark", markOf, true, [["asked", "to mark"], ["open", "still to mark"], ["none", "not marked"], ["kept", "kept"], ["rejected", "rejected"]]],
];
const all = valuesOf => [...new Set(entries.flatMap(e => [null, ...e.turns].flatMap(t => valuesOf(e, t))))].filter(Boolean)
  .sort((a, b) => a.localeCompare(b, "en", { numeric: true })).map(value => [value, value]);
for (const [name, title, valuesOf, , options = all(valuesOf)] of FILTERS)
  if (options.length > 1 || (options.length && ["reason", "verdict"].includes(name)))
    $("selects").append(el("select", { id: `f-${name}`, title, aria: { "aria-label": title } },
      el("option", { value: "" }, title), options.map(([value, text]) => el("option", { value }, text))));
$("selects").append(el("input", { id: "f-document", placeholder: "document", title: "a document's title or id", aria: { "aria-label": "document" } }));

let found = [];   // entries that match, with the turns that do
let hitTurns = new Map();
let current = null;

function search() {
  const words = $("search").value.toLowerCase().trim();
  const doc = $("f-document").value.toLowerCase().trim();
  const active = FILTERS.map(([name, , valuesOf, ofTurn]) => ({ value: $(`f-${name}`)?.value ?? "", valuesOf, ofTurn })).filter(f => f.value !== "");
  const meets = (entry, turn, filters) => filters.every(f => f.valuesOf(entry, turn).includes(f.value));
  for (const node of $("selects").children) node.classList.toggle("set", node.value !== "");
  const ofEntry = active.filter(f => !f.ofTurn), ofTurn = active.filter(f => f.ofTurn);
  hitTurns = new Map();
  let turns = 0;
  found = entries.filter(entry => {
    if (words && !haystack(entry).includes(words)) return false;
    if (doc && ![entry.title, ...entry.documents].some(d => d.toLowerCase().includes(doc))) return false;
    if (!meets(entry, null, ofEntry)) return false;
    if (!ofTurn.length) { turns += entry.turns.length; return true; }
    const hits = entry.turns.filter(t => meets(entry, t, ofTurn));
    if (!hits.length && !meets(entry, null, ofTurn)) return false;
    hitTurns.set(entry.place, new Set(hits.map(t => t.turn)));
    turns += hits.length;
    return true;
  });
  dim();
  if (current && found.length && !found.includes(current)) show(found[0]);
  const accepted = found.filter(e => e.accepted).length;
  $("found").textContent = `${count(found.length, "dialog")} (${(found.length - accepted).toLocaleString("en")} dropped), ${count(turns, "turn")}`;
  $("rows").style.height = `${found.length * ROW}px`;
  $("list").scrollTop = 0;
  draw();
}

function dim() {
  const hits = current && hitTurns.get(current.place);
  for (const node of $("dialog").querySelectorAll("[id^=turn-]")) node.classList.toggle("miss", Boolean(hits?.size) && !hits.has(+node.id.slice(5)));
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
  const marked = marks.ofDialog(entry);
  const kind = entry.accepted
    ? [count(entry.turns.length, "turn"), lost ? `${count(lost, "pair")} dropped` : ""]
    : ["✗ dropped", whole ? `${whole.stage}: ${whole.reason}` : ""];
  const state = [...kind, marked ? `✎ ${marked}` : "", several ? runs[entry.run].name : "", entry.title].filter(Boolean).join(" · ");
  const node = el("div", { className: `row${entry.accepted ? "" : " dropped"}`, id: `row-${place}`,
    aria: { role: "option", "aria-selected": entry === current, "aria-posinset": place + 1, "aria-setsize": found.length } },
    el("span", {}, turn ? turn.query : whole?.text.trim().replace(/^User: (.*)[^]*/, "$1") || entry.id), el("small", { title: state }, state));
  node.style.top = `${place * ROW}px`;
  node.addEventListener("click", () => show(entry).then(() => $("dialog").scrollIntoView({ block: "nearest" })));
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
const instructions = el("details", { open: true }, el("summary", {}, "instructions"), el("p", { className: "note" }, criteria.instructions));

async function show(entry) {
  current = entry;
  if (!entry) return draw();
  const bare = { other_answers: [], hits: [], evidence: [], verdicts: null };
  const detail = entry.full ? await unpack(`d${entry.place}`) : { document_ids: [], turns: entry.turns.map(() => bare), passages: [] };
  if (current !== entry) return;  // another was chosen meanwhile
  shown = detail;
  shown.places = new Map(detail.passages.map((passage, place) => [passage.id, place]));
  lit = null;
  const link = `#dialog=${several ? `${entry.run}:` : ""}${encodeURIComponent(entry.id)}`;
  history.replaceState(null, "", link);
  const facts = [["run", several ? runs[entry.run].name : ""], ...(detail.lm ? ["corpus", "collection", "algorithm", "split", "user", "task"].map(name => [name, detail[name]]) : []),
    ["documents", detail.document_ids.join(", ")], ["model", detail.lm], ["prompt version", detail.prompt_version], ["seed", detail.seed], ["ended early", entry.ended]].filter(([, value]) => value);
  const rest = entry.drops.filter(d => d.turn === null || !entry.turns.some(t => t.turn === d.turn));
  $("dialog").replaceChildren(
    el("h2", {}, entry.title || (entry.accepted ? "Dialog" : "Dropped dialog"), " ", el("a", { href: link, title: "link to this dialog" }, el("small", {}, entry.id))),
    el("p", { className: "facts" }, facts.map(([name, value]) => `${name}: ${value}`).join(" · ")),
    entry.accepted && !entry.full ? el("p", { className: "note" }, "Its passages, hits and reasons are not in this file, which has a sample of them: see the overview.") : "",
    ...entry.turns.map((turn, place) => turnOf(entry, turn, detail.turns[place])),
    ...rest.sort((a, b) => (b.scope === "dialog") - (a.scope === "dialog")).map(drop),
    entry.accepted && form(entry, null) ? el("section", { className: "turn whole" }, el("h3", {}, "The dialog as a whole"), form(entry, null)) : "");
  dim();
  $("dialog").scrollTop = 0;
  passages();
  draw();
  const first = $("dialog").querySelector(".turn:not(.miss)");
  if (first?.previousElementSibling?.matches(".turn")) first.scrollIntoView({ block: "nearest" });
}

function drop(each) {
  const what = { dialog: "dialog", turn: `turn ${each.turn}` }[each.scope] ?? `${each.scope} of turn ${each.turn}`;
  return el("div", { className: "drop" }, el("b", {}, `Dropped ${what}`), ` · ${each.stage}: ${each.reason}`,
    each.text ? el("pre", {}, each.text) : "");
}

// A text has a direction of its own beside its English label.
const labelled = (label, text) => text ? el("p", { className: "small" }, el("b", {}, `${label}: `), el("span", {}, text)) : "";

function worthOf(turn, detail) {
  const ranks = [["last turn", detail.rank_last_turn], ["search query", detail.rank_query]].filter(([, rank]) => rank);
  return [turn.difficulty, turn.overlap !== null && `overlap of words ${turn.overlap}`,
    ranks.length && `evidence ranked ${ranks.map(([by, rank]) => `${rank} by the ${by}`).join(", ")}`,
    turn.new_passages !== null && count(turn.new_passages, "new passage")].filter(Boolean).join(" · ");
}

function turnOf(entry, turn, detail) {
  const tag = (text, kind = "", title = "") => text ? el("span", { className: `tag ${kind}`, title }, text) : "";
  const types = [turn.question_type === "unlabelled" ? "" : turn.question_type, turn.multi_turn_type && turn.multi_turn_type !== turn.question_type ? turn.multi_turn_type : "", turn.answerability];
  const reason = entry.pairs.get(turn.turn), lost = entry.drops.filter(d => d.turn === turn.turn && d.scope !== "pair");
  const answer = el("button", { type: "button", className: "answer", aria: { "aria-pressed": false, "aria-label": `Answer of turn ${turn.turn}: show its evidence` } }, turn.answer || "(no answer)");
  answer.addEventListener("click", () => light(turn.turn, detail.evidence, answer));
  const name = place => place === undefined ? "a passage that is not in the dialog" : `${shown.passages[place].title || shown.passages[place].id} (${place + 1})`;
  return el("section", { className: "turn", id: `turn-${turn.turn}` },
    el("div", { className: "tags" }, el("b", {}, `Turn ${turn.turn}`), types.map((t, place) => tag(t, "", ["question type", "multi-turn type", "answerability"][place])),
      turn.given ? tag("given") : turn.kept === null ? "" : turn.kept ? tag("✓ kept", "kept") : tag(`✗ ${reason ?? "dropped"}`, "gone")),
    el("p", { className: "query" }, turn.query),
    labelled("before slips", detail.clean_query),
    labelled("search", detail.retrieval_query),
    detail.hits.length ? el("ol", { className: "hits" }, detail.hits.map(({ passage_id, rank, score, new: fresh }) => {
      const place = shown.places.get(passage_id);
      const to = el("button", { type: "button", disabled: place === undefined }, name(place));
      to.addEventListener("click", () => $(`passage-${place}`).scrollIntoView({ block: "start" }));
      return el("li", {}, `${rank}. `, to, score ? ` score\u00a0${score.toPrecision(3)}` : "", fresh ? el("b", {}, " new") : "");
    })) : "",
    answer,
    detail.reasoning ? el("details", {}, el("summary", {}, "reasoning"), el("p", { className: "small" }, detail.reasoning)) : "",
    detail.other_answers.map(answer => labelled("another reference", answer)),
    labelled("before a person edited it", detail.original_answer),
    labelled("difficulty", worthOf(turn, detail)),
    turn.verdicts.map(([judge, label], place) => {
      const { explanation: why, model, score = null, decides = true } = detail.verdicts?.[place] ?? {};
      return el("p", { className: "small" }, el("b", {}, `${judge}: ${label}`), score === null || String(score) === label ? "" : ` (${score})`,
        model ? ` by ${model}` : "", decides ? "" : " (doesn't decide)", why ? [" – ", el("span", {}, why)] : "");
    }),
    lost.length ? el("details", {}, el("summary", {}, ["turn", "candidate"].map(scope => [lost.filter(d => d.scope === scope).length, scope]).filter(([n]) => n).map(([n, scope]) => count(n, `dropped ${scope}`)).join(", ")), lost.map(drop)) : "",
    turn.given || !(turn.answer || marks.asked.has(Marks.place(entry, turn.turn))) ? "" : form(entry, turn.turn));
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
  for (const { passage_id, start, end } of lit?.evidence ?? []) spans[shown.places.get(passage_id)]?.push([start, end]);
  const said = !shown.passages.length ? (current.accepted && !current.full ? "The passages of this dialog are not in this file." : "No passages.") : !lit ? `${count(shown.passages.length, "passage")}.${shown.turns.some(turn => turn.evidence.length) ? " A click on an answer lights up its evidence." : ""}`
    : lit.evidence.length ? `Evidence of turn ${lit.turn}: ${count(lit.evidence.length, "sentence")}.` : `The answer of turn ${lit.turn} names no evidence.`;
  $("passages").replaceChildren(...(marks.asked.size && criteria.instructions ? [instructions] : []), el("p", { className: "hint", aria: { role: "status" } }, said), ...shown.passages.map((passage, place) =>
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
for (const kind of ["input", "change"])
  $("filters").addEventListener(kind, () => { clearTimeout(waiting); waiting = setTimeout(search, 80); });
$("filters").addEventListener("reset", () => setTimeout(search));
$("filters").addEventListener("keydown", event => {
  if (event.key !== "Enter" || event.target.tagName !== "INPUT") return;
  event.preventDefault();
  clearTimeout(waiting);
  search();
  $("list").focus();
});
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
addEventListener("resize", draw);
addEventListener("beforeunload", event => { if (marks.unsaved) event.preventDefault(); });
addEventListener("hashchange", go);

function go() {
  if (!view()) return;
  const [, run, id] = location.hash.match(/^#dialog=(?:(\d+):)?(.*)$/) ?? [];
  let wanted = id === undefined ? current : entries.find(e => e.id === decodeURIComponent(id) && e.run === +(run ?? 0));
  if (id !== undefined && !wanted) $("dialog").replaceChildren(el("p", { className: "empty" }, "This report has no such dialog."));
  else if (wanted !== current || !shown) show(wanted ?? found[0] ?? null).then(() => { const place = found.indexOf(current); if (place * ROW > $("list").clientHeight) $("list").scrollTop = place * ROW; });
  draw();
}

if (marks.asked.size && $("f-mark")) $("f-mark").value = "asked";
tellMarks();
search();
if (marks.asked.size && !location.hash) location.hash = "#dialogs";
go();
document.documentElement.dataset.ready = "yes";
})();
