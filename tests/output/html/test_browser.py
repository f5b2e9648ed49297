"""The report in a real Chromium without a network; skipped where Debian's chromium and chromium-driver are missing."""

import json
import os
import shutil
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from selenium import webdriver
from selenium.common.exceptions import StaleElementReferenceException
from selenium.webdriver.common.by import By
from selenium.webdriver.common.keys import Keys
from selenium.webdriver.remote.webelement import WebElement
from selenium.webdriver.support.ui import WebDriverWait

from generator.dialogs.marks import Mark, Marks, fingerprint, read_marks
from generator.output.html.page import write_report
from generator.schema import Drop, Evidence, Verdict
from taxonomy import read_criteria
from tests.output.html.test_page import HOSTILE, make_set
from tests.support.records import make_dialog, make_hits, make_passage, make_turn

BROWSER, DRIVER = shutil.which("chromium"), shutil.which("chromedriver")
pytestmark = pytest.mark.skipif(not (BROWSER and DRIVER), reason="needs Debian's chromium and chromium-driver")

TEXT = f"🚢 Boats leave at nine. They return at noon. {HOSTILE}"
SENTENCE = "They return at noon."
WRONG = Verdict(judge="correctness", label="incorrect", explanation="The passage says noon.", model="m")
DIALOGS = [
    make_dialog(
        make_turn(
            1,
            query=f"When do boats return, {number}?",
            hits=make_hits("p", "q"),
            evidence=(Evidence(passage_id="p", start=TEXT.index("They"), end=TEXT.index(" <"), text=SENTENCE),),
            rank_last_turn=1 if number == 7 else 7,
            rank_query=2,
        ),
        make_turn(
            2,
            query="And at night?",
            question_type="comparative",
            retrieval_query="מתי חוזרות הסירות בלילה?",
            verdicts=(WRONG,) if number == 7 else (),
        ),
        passages=[make_passage("p", TEXT, title="Harbour"), make_passage("q", "Nothing.", title=HOSTILE)],
        id=f"dialog{number:03}",
        user="hurried" if number < 2 else "",
    )
    for number in range(300)
]
DROPS = [
    Drop(dialog_id="dialog007", scope="pair", turn=2, stage="judge", reason="judged incorrect", text="A2."),
    Drop(dialog_id="gone", scope="dialog", stage="ask", reason="copies an example", text=f"A lost one {HOSTILE}"),
]


class Browser:
    """A page in Chromium."""

    def __init__(self, driver: webdriver.Chrome, report: Path, downloads: Path) -> None:
        self.driver, self.report, self.downloads = driver, report, downloads

    def open(self, view: str = "#dialogs") -> None:
        self.driver.get("about:blank")
        self.driver.get(f"{self.report.as_uri()}{view}")
        self.wait("return document.documentElement.dataset.ready === 'yes'")

    def wait(self, script: str) -> None:
        end = time.monotonic() + 300
        while not self.driver.execute_script(script):
            assert time.monotonic() < end, script
            time.sleep(0.02)

    def one(self, selector: str) -> WebElement:
        return self.driver.find_element(By.CSS_SELECTOR, selector)

    def texts(self, selector: str) -> list[str]:
        script = "return [...document.querySelectorAll(arguments[0])].map(element => element.innerText)"
        return list(self.driver.execute_script(script, selector))

    def click(self, selector: str) -> None:
        """Click an element, again if the page has just replaced it."""
        waiting = WebDriverWait(self.driver, 300, ignored_exceptions=[StaleElementReferenceException])
        waiting.until(lambda _: self.one(selector).click() is None)

    def found(self, text: str) -> None:
        self.wait(f"return document.getElementById('found').textContent.startsWith({json.dumps(text)})")

    def shown(self, dialog_id: str) -> None:
        self.wait(f"return document.querySelector('#dialog h2 small')?.textContent === {json.dumps(dialog_id)}")

    def keys(self, *keys: str) -> None:
        webdriver.ActionChains(self.driver).send_keys(*keys).perform()


@pytest.fixture(scope="module")
def browser(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Browser]:
    folder = tmp_path_factory.mktemp("report")
    sets = [make_set("run", DIALOGS, DROPS, continues="python -m generator run/config.yaml")]
    write_report(folder / "report.html", sets, read_criteria())
    options = webdriver.ChromeOptions()
    options.binary_location = BROWSER or ""
    for argument in ("--headless=new", "--no-sandbox", "--disable-dev-shm-usage", "--window-size=1400,900"):
        options.add_argument(argument)
    options.add_experimental_option("prefs", {"download.default_directory": str(folder)})
    options.set_capability("goog:loggingPrefs", {"browser": "ALL", "performance": "ALL"})
    # Files that it saves have names of people, with umlauts, too.
    service = webdriver.ChromeService(DRIVER, env={**os.environ, "LC_ALL": "C.UTF-8"})
    driver = webdriver.Chrome(options=options, service=service)
    page = Browser(driver, folder / "report.html", folder)
    try:
        yield page
        # Of all that the tests below did: nothing failed, and nothing was asked for but the reports themselves.
        assert driver.get_log("browser") == []
        events = [json.loads(each["message"])["message"] for each in driver.get_log("performance")]
        asked = {e["params"]["request"]["url"] for e in events if e["method"] == "Network.requestWillBeSent"}
        reports = {report.as_uri() for report in folder.glob("*.html")}
        assert {url.partition("#")[0] for url in asked if not url.startswith(("blob:", "data:"))} <= reports
    finally:
        driver.quit()


def test_search_and_filters_narrow_the_list_and_drops_are_in_it(browser: Browser) -> None:
    browser.open()
    browser.found("301 dialogs (1 dropped), 600 turns")
    assert len(browser.texts(".row")) < 30  # of those in sight alone
    browser.one("#search").send_keys("return, 123?")
    browser.found("1 dialog")
    assert "When do boats return, 123?" in browser.texts(".row")[0]
    browser.click("button[type=reset]")
    browser.found("301 dialogs")
    browser.click("#f-type option[value=comparative]")
    browser.found("300 dialogs (0 dropped), 300 turns")
    browser.click("#f-verdict option[value='correctness: incorrect']")
    browser.found("1 dialog (0 dropped), 1 turn")
    browser.click("button[type=reset]")
    browser.click("#f-user option[value=plain]")
    browser.found("298 dialogs (0 dropped)")
    browser.click("button[type=reset]")
    browser.found("301 dialogs")
    browser.click("#f-reason option[value='dialog: ask: copies an example']")
    browser.found("1 dialog (1 dropped)")
    browser.shown("gone")  # not one that the filter leaves out
    assert browser.texts(".drop pre") == [f"A lost one {HOSTILE}"]


def test_an_answer_lights_up_its_evidence_and_markup_stays_text(browser: Browser) -> None:
    browser.open("#dialog=dialog042")
    browser.shown("dialog042")
    browser.click("#turn-1 .answer")
    assert browser.texts("mark") == [SENTENCE]
    assert HOSTILE in browser.one("#passage-0").text
    assert [text.split()[-1] for text in browser.texts("#turn-1 .hits li")] == ["new", "new"]
    assert browser.driver.find_elements(By.CSS_SELECTOR, "main img, main script") == []
    browser.click("#turn-2 .answer")
    assert browser.texts("mark") == []
    assert browser.one("#turn-2 .small span").value_of_css_property("direction") == "rtl"


def test_turns_that_a_filter_does_not_find_are_dim_while_it_is_set(browser: Browser) -> None:
    browser.open("#dialog=dialog042")
    browser.shown("dialog042")
    browser.click("#f-type option[value=comparative]")
    browser.found("300 dialogs (0 dropped), 300 turns")
    assert len(browser.texts("#turn-1.miss, #turn-2:not(.miss)")) == 2
    browser.click("button[type=reset]")
    browser.found("301 dialogs")
    assert browser.texts(".turn.miss") == []


def test_what_was_dropped_at_the_end_stands_there_and_a_small_window_cuts_no_heading(browser: Browser) -> None:
    dialog = make_dialog(make_turn(1, verdicts=(WRONG,)), make_turn(2), id="kept")
    text = "User: מתי חוזרת הסירה?\nAgent: בצהריים."
    lost = [
        *[Drop(dialog_id="kept", scope="candidate", turn=1, stage="ask", reason="asks nothing", text="Or?")] * 3,
        Drop(dialog_id="kept", scope="turn", turn=3, stage="answer", reason="answers nothing", text="A lost turn"),
        Drop(dialog_id="gone", scope="candidate", turn=1, stage="ask", reason="asks nothing", text="It is late."),
        Drop(dialog_id="gone", scope="dialog", turn=1, stage="answer", reason="answers nothing", text=text),
    ]
    page = Browser(browser.driver, browser.downloads / "ends.html", browser.downloads)
    write_report(page.report, [make_set("run", [dialog], lost)], read_criteria())
    size = page.driver.get_window_size()
    page.driver.set_window_size(820, 520)
    try:
        page.open("#dialog=kept")
        page.shown("kept")
        assert page.texts("#turn-1 summary") == ["3 dropped candidates", "criteria (lee2024)"]
        assert page.texts("#dialog > .drop")[0].startswith("Dropped turn 3 · answer: answers nothing")
        assert page.driver.execute_script("return document.getElementById('dialog').scrollTop") == 0
        assert page.texts(".row.dropped span") == ["מתי חוזרת הסירה?"]
        page.open("#dialog=gone")
        page.shown("gone")
        assert [drop.partition(" ·")[0] for drop in page.texts(".drop")] == [
            "Dropped dialog",
            "Dropped candidate of turn 1",
        ]
        page.open("#overview")
        assert page.driver.execute_script("return scrollY") == 0, "the way to the other view is in sight"
        page.driver.execute_script("for (const each of document.querySelectorAll('details')) each.open = true")
        lines = """return [...document.querySelectorAll("td")].map(cell => {
            const range = document.createRange();
            range.selectNodeContents(cell);
            return range.getClientRects().length; })"""
        assert max(page.driver.execute_script(lines)) == 1, "a number is broken into two lines"
    finally:
        page.driver.set_window_size(size["width"], size["height"])


def test_charts_can_be_read_on_a_phone(browser: Browser) -> None:
    phone = {"width": 400, "height": 800, "deviceScaleFactor": 2, "mobile": True}
    browser.driver.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", phone)
    try:
        browser.open("#overview")
        sizes = """return [...document.querySelectorAll("svg text")].map(
            text => text.getScreenCTM()?.a * parseFloat(getComputedStyle(text).fontSize)).filter(size => size)"""
        assert min(browser.driver.execute_script(sizes)) >= 11
        ends = """return [...document.querySelectorAll(".chart, .chart text")].map(
            each => Math.max(each.getBoundingClientRect().right, each.scrollWidth || 0))"""
        assert max(browser.driver.execute_script(ends)) <= 400, "nothing scrolls"
    finally:
        browser.driver.execute_cdp_cmd("Emulation.clearDeviceMetricsOverride", {})


def test_a_turn_says_what_it_is_worth(browser: Browser) -> None:
    browser.open()
    browser.click("#f-difficulty option[value=hard]")
    browser.found("299 dialogs (0 dropped), 299 turns")
    browser.click("button[type=reset]")
    browser.open("#dialog=dialog042")
    browser.shown("dialog042")
    said = "difficulty: hard · overlap of words 0.25 · evidence ranked 7 by the last turn, 2 by the search query"
    assert said in browser.texts("#turn-1 .small")
    assert not any(text.startswith("difficulty") for text in browser.texts("#turn-2 .small"))


def test_marks_by_keyboard_alone_are_saved_and_opened_again(browser: Browser) -> None:
    browser.open()
    browser.driver.execute_script("localStorage.clear()")
    browser.open()
    browser.keys("/")
    browser.keys("return, 7?", Keys.ENTER)  # from the search to the list
    browser.found("1 dialog")
    browser.keys(Keys.ARROW_DOWN, Keys.ENTER)
    browser.shown("dialog007")
    for _ in range(40):
        browser.keys(Keys.TAB)
        focused = browser.driver.switch_to.active_element
        if focused.text == "Reject":
            break
    browser.keys(Keys.ENTER, Keys.TAB, "says nothing of it", Keys.TAB, Keys.ENTER)
    browser.one("#annotator").send_keys("Zoë B", Keys.ENTER)
    browser.wait("return document.getElementById('marked').textContent.includes('without spaces')")
    browser.one("#annotator").send_keys(Keys.BACKSPACE, Keys.BACKSPACE, Keys.ENTER)
    file = browser.downloads / "marks-Zoë.json"
    browser.wait("return document.getElementById('marked').textContent.startsWith('1 mark saved')")
    end = time.monotonic() + 300
    while not file.exists() and time.monotonic() < end:
        time.sleep(0.05)
    (mark,) = read_marks(file).marks
    assert (mark.dialog_id, mark.turn, mark.keep, mark.note) == ("dialog007", 1, False, "says nothing of it")
    assert "marks=marks-Zoë.json" in browser.one("#marked").text
    browser.open("#dialog=dialog007")
    browser.wait("return document.getElementById('marked').textContent === '1 marked'")
    browser.driver.execute_script("localStorage.clear()")
    browser.open("#dialog=dialog007")
    browser.one("#open").send_keys(str(file))
    browser.wait("return document.getElementById('marked').textContent.startsWith('opened')")
    browser.wait("return document.querySelector('#turn-1 [data-keep=false]').getAttribute('aria-pressed') === 'true'")
    foreign = browser.downloads / "foreign.json"
    foreign.write_text(file.read_text(encoding="utf-8").replace(read_marks(file).run, "f" * 16), encoding="utf-8")
    browser.one("#open").send_keys(str(foreign))
    browser.wait("return document.getElementById('marked').textContent.includes('another run')")


def test_a_note_is_kept_at_once_and_stays_unsaved_when_a_file_is_opened(browser: Browser) -> None:
    browser.open()
    browser.driver.execute_script("localStorage.clear()")
    browser.open("#dialog=dialog000")
    browser.shown("dialog000")
    browser.one("#turn-1 .marks input").send_keys("too long")
    browser.click("#row-1")
    browser.shown("dialog001")
    browser.open()
    browser.wait("return document.getElementById('marked').textContent === '1 marked, not saved to a file yet'")
    file = browser.downloads / "others.json"
    file.write_text(Marks(run=fingerprint(DIALOGS[0]), annotator="eva", marks=()).model_dump_json(), encoding="utf-8")
    browser.one("#open").send_keys(str(file))
    browser.wait("return document.getElementById('marked').textContent.startsWith('opened')")
    may_close = "return dispatchEvent(new Event('beforeunload', { cancelable: true }))"
    assert not browser.driver.execute_script(may_close)
    browser.click("#save")
    browser.wait("return document.getElementById('marked').textContent.startsWith('1 mark saved')")
    assert browser.driver.execute_script(may_close)


@pytest.mark.parametrize(("annotator", "keep", "marked"), [("", None, "1 of 1 marked"), ("eva", True, "1 marked")])
def test_the_marks_on_a_sample_are_there_when_it_is_opened_again(
    browser: Browser, annotator: str, keep: bool | None, marked: str
) -> None:
    dialog = make_dialog(make_turn(1), id="drawn")
    asked = Marks(run=fingerprint(dialog), annotator=annotator, marks=(Mark(dialog_id="drawn", turn=1, keep=keep),))
    sample = Browser(browser.driver, browser.downloads / "sample.html", browser.downloads)
    write_report(sample.report, [make_set("sample", [dialog])], read_criteria(), asked)
    sample.open()
    sample.driver.execute_script("localStorage.clear()")
    sample.open("#dialog=drawn")
    sample.one("#annotator").clear()
    sample.one("#annotator").send_keys("ada", Keys.TAB)
    sample.click("#turn-1 [data-keep=false]")
    sample.wait(f"return document.getElementById('marked').textContent === '{marked}, not saved to a file yet'")
    for _ in range(2):
        sample.open("#dialog=drawn")
        sample.wait(
            "return document.querySelector('#turn-1 [data-keep=false]').getAttribute('aria-pressed') === 'true'"
        )
        assert sample.one("#annotator").get_attribute("value") == "ada"
        sample.click("#save")
        sample.wait("return document.getElementById('marked').textContent === '1 mark saved.'")


def test_only_an_answer_can_be_kept_or_rejected(browser: Browser) -> None:
    item = make_dialog(make_turn(1, answer=""), make_turn(2), id="item")
    page = Browser(browser.driver, browser.downloads / "items.html", browser.downloads)
    write_report(page.report, [make_set("items", [item])], read_criteria())
    page.open("#dialog=item")
    page.shown("item")
    assert "(no answer)" in page.one("#turn-1").text and not page.texts("#turn-1 .marks")
    assert page.texts("#turn-2 [data-keep]") == ["Keep", "Reject"]


def test_a_run_and_its_judged_copy_have_the_same_marks(browser: Browser) -> None:
    dialog = make_dialog(make_turn(1), make_turn(2), id="both")
    page = Browser(browser.driver, browser.downloads / "beside.html", browser.downloads)
    write_report(page.report, [make_set(name, [dialog]) for name in ("run", "judged")], read_criteria())
    page.open("#dialog=0:both")
    page.driver.execute_script("localStorage.clear()")
    page.open("#dialog=0:both")
    page.click("#turn-1 [data-keep=false]")
    page.click("#row-1")
    page.wait("return location.hash === '#dialog=1:both'")
    page.click("#turn-2 [data-keep=true]")
    page.open("#dialog=1:both")
    page.wait("return document.querySelectorAll('#dialog [data-keep][aria-pressed=true]').length === 2")
    assert page.one("#marked").text.startswith("2 marked")
