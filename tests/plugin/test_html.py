"""The HTML page: whole without its script, and driven in a real browser where there is one."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from html.parser import HTMLParser
from urllib.parse import unquote

import pytest
from plugin.conftest import PROGRAMS
from plugin.test_json import TESTS

from pytest_dynacheck._html import page as html_page

MORE = """
@pytest.mark.max_recompiles(2)
def test_counter():
    model = torch.compile(Counting())
    for _ in range(12):
        model(X)

@pytest.mark.max_graphs(1)
@pytest.mark.parametrize("name", ["</script><b id='x'>&amp;", "two words"])
def test_named(name):
    torch.compile(clean)(X)
"""
BROWSERS = ("chromium-headless-shell", "chromium", "chromium-browser", "google-chrome")
VOID = {"meta", "input", "br"}


class Reader(HTMLParser):
    """Ids, links, text and faults of a page."""

    def __init__(self, text):
        super().__init__()
        self.open, self.ids, self.links, self.texts, self.faults, self.loads = [], [], [], [], [], []
        self.data = ""
        self.feed(text)
        self.close()

    def handle_starttag(self, tag, attrs):
        attrs = dict(attrs)
        self.ids += [attrs["id"]] if "id" in attrs else []
        self.links += [attrs["href"]] if "href" in attrs else []
        self.loads += [attrs["src"]] if "src" in attrs else []
        if tag not in VOID:
            self.open.append((tag, attrs.get("id")))

    def handle_endtag(self, tag):
        found = self.open.pop()[0] if self.open else None
        if found != tag:
            self.faults.append(f"</{tag}> ends <{found}>")

    def handle_data(self, data):
        if ("script", "data") in self.open:
            self.data += data
        elif not {tag for tag, _ in self.open} & {"script", "style"}:
            self.texts.append(data)


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    """A folder in which a run wrote both files."""
    folder = tmp_path_factory.mktemp("run")
    (folder / "programs.py").write_text(PROGRAMS)
    (folder / "test_it.py").write_text("from programs import *\n" + TESTS + MORE)
    subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "--rootdir=.",
         "--dynacheck-html=page.html", "--dynacheck-json=data.json"],
        cwd=folder, capture_output=True, text=True, check=False,
    )  # fmt: skip
    return folder


@pytest.fixture(scope="module")
def document(run):
    return json.loads((run / "data.json").read_text())


@pytest.fixture(scope="module")
def reader(run):
    return Reader((run / "page.html").read_text(encoding="utf-8"))


def test_the_page_is_well_formed_and_loads_nothing(reader):
    assert (reader.faults, reader.open, reader.loads) == ([], [], [])
    assert [link for link in reader.links if not link.startswith("#")] == []


def test_links_lead_somewhere_and_ids_are_unique(reader):
    assert len(reader.ids) == len(set(reader.ids))
    assert not any(" " in name for name in reader.ids)
    assert {link.removeprefix("#") for link in reader.links} <= set(reader.ids)
    assert len(reader.links) >= 8


def test_the_data_is_inside(reader, document):
    assert json.loads(reader.data) == document


def test_it_tells_all_of_it(reader, document):
    text = "".join(reader.texts)
    for test in document["tests"]:
        assert test["nodeid"] in text
        for line in test["messages"] + list(test["causes"]):
            assert line.replace("`", "") in text.replace("`", "")
        for graph in test["graphs"]:
            assert graph["code"] in text
    for part in (
        "0, 1, 2, 3, 4, 5, 6, 7", "- 0.5", "+ 0.6", "Left behind, restored", "Compiled in setup, not counted: graphs 1",
        "Nothing is known about what it compiled.", "What", "max_graph_breaks", "call that writes output",
    ):  # fmt: skip
        assert part in text


def test_a_run_without_tests(document):
    reader = Reader(html_page({**document, "tests": [], "verdicts": {}}))
    assert "No test was under test." in reader.texts
    assert reader.faults == []


def test_what_cant_be_known_is_a_question_mark(document):
    unknown = dict(document["tests"][1])
    unknown["counts"] = {**unknown["counts"], "graph_breaks": None}
    text = "".join(Reader(html_page({**document, "tests": [unknown]})).texts)
    assert "graph breaks ?" in text
    assert "? graph breaks" in text


def test_a_fault_in_the_page_is_told_and_loses_nothing(project, monkeypatch):
    from pytest_dynacheck import _html

    def fault(*args):
        raise ZeroDivisionError("planted")

    monkeypatch.setattr(_html, "page", fault)
    result = project.run("--dynacheck-html=a.html", "--dynacheck-json=a.json", text=TESTS)
    result.assert_outcomes(passed=5, failed=3, errors=1, xfailed=1)
    result.stdout.fnmatch_lines(["dynacheck: --dynacheck-html: *a.html: ZeroDivisionError: planted"])
    assert not (project.pytester.path / "a.html").exists()
    assert json.loads((project.pytester.path / "a.json").read_text())["tests"]


@pytest.fixture(scope="module")
def browser():
    """A headless Chromium: Playwright's own, or the system's."""
    api = pytest.importorskip("playwright.sync_api", reason="no browser: playwright isn't installed")
    found = [path for path in map(shutil.which, BROWSERS) if path]
    with api.sync_playwright() as playwright:
        faults = []
        for path in [*found, None]:
            try:
                launched = playwright.chromium.launch(executable_path=path, args=["--no-sandbox"])
            except api.Error as error:
                faults.append(str(error).strip().splitlines()[0])
                continue
            yield launched
            launched.close()
            return
    pytest.skip(f"no browser: {'; '.join(faults)}")


@pytest.fixture
def view(browser, run):
    """Opens the page; a fault in its script fails the test."""
    contexts, faults = [], []

    def show(place="", **settings):
        context = browser.new_context(**settings)
        contexts.append(context)
        shown = context.new_page()
        shown.on("pageerror", lambda error: faults.append(str(error)))
        shown.on("console", lambda message: faults.append(message.text))
        shown.on(
            "request", lambda request: faults.append(request.url) if "page.html" not in request.url else None
        )
        shown.goto(f"{(run / 'page.html').as_uri()}{place}")
        return shown

    yield show
    for context in contexts:
        context.close()
    assert faults == []


def visible(shown):
    names = shown.locator("details.test:visible > summary .name")
    return [name.partition("::")[2] for name in names.all_inner_texts()]


def wait_until_open(test):
    """Following a link opens a test in an event of its own, after the click; a test that stays closed fails here."""
    test.page.wait_for_function("node => node.open", arg=test.element_handle(), timeout=10_000)


def test_filtering_by_verdict(view, document):
    shown = view()
    total = len(document["tests"])
    assert shown.locator("#shown").inner_text() == f"{total} of {total} tests"
    shown.get_by_label("compiled nothing").check()
    assert visible(shown) == ["test_nothing"]
    shown.get_by_label("allowed").check()
    assert visible(shown) == ["test_allowed"]
    shown.get_by_label("not judged").check()
    assert visible(shown) == ["test_wrong_marker"]
    shown.get_by_label("over budget").check()
    assert visible(shown) == ["test_break", "test_counter", "test_expected"]
    assert shown.locator("#shown").inner_text() == f"3 of {total} tests"
    shown.get_by_label("all", exact=True).check()
    assert len(visible(shown)) == total


def test_filtering_by_words(view):
    shown = view()
    box = shown.get_by_label("Find")
    box.fill("SELF.STEPS test_it")
    assert visible(shown) == ["test_counter"]
    box.fill("nowhere")
    assert visible(shown) == []
    box.fill("")
    shown.get_by_label("ended in eager").check()
    box.fill("looping")
    assert visible(shown) == ["test_eager"]


def test_faulty_tests_are_open_and_come_first(view):
    shown = view()
    opened = shown.locator("details.test[open] > summary .name").all_inner_texts()
    assert [name.partition("::")[2] for name in opened] == visible(shown)[: len(opened)]
    assert len(opened) == 5
    shown.get_by_role("button", name="Close all").click()
    assert shown.locator("details.test[open]").count() == 0
    shown.get_by_role("button", name="Open all").click()
    assert shown.locator("details.test:not([open])").count() == 0


def test_graph_code_unfolds(view):
    shown = view()
    graph = shown.locator("details.test", has_text="test_break").locator("details.graph").last
    assert not graph.locator("pre").is_visible()
    graph.locator("summary").click()
    assert "def forward" in graph.locator("pre").inner_text()


def test_links_open_what_they_lead_to(view):
    shown = view()
    shown.get_by_label("compiled nothing").check()
    shown.locator("table a", has_text="test_allowed").click()
    test = shown.locator("details.test", has_text="test_allowed").first
    wait_until_open(test)
    assert test.get_by_text("Allowed as").is_visible()
    place = unquote(shown.url.partition("#")[2])
    assert place == "test_it.py::test_allowed recompile:value:self.scale@programs.py:Scaled.forward"
    again = view(f"#{shown.url.partition('#')[2]}")
    wait_until_open(again.locator("details.test", has_text="test_allowed").first)


def test_the_data_can_be_saved(view, document, tmp_path):
    shown = view(accept_downloads=True)
    with shown.expect_download() as download:
        shown.get_by_role("button", name="Save the data").click()
    download.value.save_as(tmp_path / "saved.json")
    assert json.loads((tmp_path / "saved.json").read_text(encoding="utf-8")) == document


def test_with_scripts_off_it_is_a_plain_list(view, document):
    shown = view(java_script_enabled=False)
    assert not shown.locator("#filter").is_visible()
    assert len(visible(shown)) == len(document["tests"])
    test = shown.locator("details.test", has_text="test_within").first
    test.locator("summary").first.click()
    assert test.get_by_role("heading", name="Graphs").is_visible()


def test_keys_alone_reach_everything(view):
    shown = view()
    test = shown.locator("details.test", has_text="test_within").first
    test.locator("summary").first.focus()
    shown.keyboard.press("Enter")
    wait_until_open(test)
    shown.get_by_label("all", exact=True).focus()
    shown.keyboard.press("ArrowRight")
    assert visible(shown) == ["test_break", "test_counter", "test_expected"]


def test_it_fits_a_phone(view):
    shown = view(viewport={"width": 360, "height": 740})
    shown.get_by_role("button", name="Open all").click()
    assert shown.evaluate("document.documentElement.scrollWidth") <= 360


CONTRASTS = """() => {
  const part = (v) => (v /= 255) <= 0.03928 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4;
  const numbers = (css) => css.match(/[\\d.]+/g).map(Number);
  const light = ([r, g, b]) => 0.2126 * part(r) + 0.7152 * part(g) + 0.0722 * part(b);
  const behind = (node) => {
    for (; node; node = node.parentElement) {
      const found = numbers(getComputedStyle(node).backgroundColor);
      if (found.length === 3 || found[3] > 0) return found;
    }
    return [255, 255, 255];
  };
  const bad = [];
  for (const node of document.querySelectorAll("body *")) {
    const text = [...node.childNodes].some((child) => child.nodeType === 3 && child.data.trim());
    if (!text || !node.checkVisibility()) continue;
    const [a, b] = [light(numbers(getComputedStyle(node).color)), light(behind(node))];
    const ratio = (Math.max(a, b) + 0.05) / (Math.min(a, b) + 0.05);
    if (ratio < 4.5) bad.push(`${node.tagName}.${node.className} ${ratio.toFixed(2)}: ${node.textContent.slice(0, 40)}`);
  }
  return bad;
}"""


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_text_can_be_read(view, scheme):
    shown = view(color_scheme=scheme)
    shown.get_by_role("button", name="Open all").click()
    assert shown.evaluate(CONTRASTS) == []


def test_controls_have_names_and_headings_are_in_order(view):
    shown = view()
    levels = [
        int(tag[1]) for tag in shown.eval_on_selector_all("h1, h2, h3", "all => all.map((h) => h.tagName)")
    ]
    assert levels[0] == 1 and levels.count(1) == 1
    assert all(after - before <= 1 for before, after in zip(levels, levels[1:], strict=False))
    unnamed = shown.eval_on_selector_all("input", "all => all.filter((i) => !i.labels.length).length")
    assert unnamed == 0
    assert shown.title() == "dynacheck: 5 of 12 tests not ok"
