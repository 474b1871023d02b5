#!/usr/bin/env python3
"""Clicks through a page of `lookback inspect` in headless Chromium; see README.md."""

import argparse
import pathlib
import shutil
import sys
import time

from playwright.sync_api import sync_playwright

WIDTHS = {"desktop": (1280, 900), "phone": (390, 844)}


def open_page(browser, path, size, scheme, problems):
    context = browser.new_context(viewport={"width": size[0], "height": size[1]}, color_scheme=scheme)
    page = context.new_page()
    page.on("console", lambda m: problems.append(f"console: {m.text}") if m.type in ("error", "warning") else None)
    page.on("pageerror", lambda e: problems.append(f"error: {e}"))
    page.on("request", lambda r: problems.append(f"request: {r.url}") if not r.url.startswith(("file:", "data:", "blob:")) else None)
    start = time.time()
    page.goto(f"file://{path}")
    page.wait_for_function("typeof current === 'undefined' || current !== null")
    page.evaluate("new Promise(r => requestAnimationFrame(() => requestAnimationFrame(r)))")
    return page, time.time() - start


def wide(page):
    """How far the document is wider than the window."""
    return page.evaluate("document.documentElement.scrollWidth - innerWidth")


def expect(problems, what, holds):
    if not holds:
        problems.append(f"failed: {what}")


def attention(page, problems, shot):
    numbers = lambda: page.inner_text("#numbers")
    settle = lambda: page.wait_for_timeout(120)
    shot("matrix")
    for part in [b.get_attribute("data-part") for b in page.query_selector_all("#parts button")]:
        page.click(f"#parts button[data-part={part}]")
        settle()
        expect(problems, f"part {part}", page.evaluate("shown.part") == part)
    page.click("#parts button >> nth=0")
    for key in ("layer", "head"):
        for value in [o.get_attribute("value") for o in page.query_selector_all(f"#{key} option")]:
            if page.is_enabled(f"#{key}"):
                page.select_option(f"#{key}", value)
                settle()
                expect(problems, f"{key} {value}", str(page.evaluate(f"shown.{key}")) == value)
    # On a phone the middle of a long matrix may lie below the window.
    page.query_selector("#frame").evaluate("frame => frame.scrollIntoView()")
    box = page.query_selector("#canvas").bounding_box()
    page.mouse.move(box["x"] + box["width"] * 0.6, box["y"] + box["height"] * 0.6)
    settle()
    expect(problems, "hover shows a row", "looks at" in page.inner_text("#readout"))
    shot("hover")
    page.click("[data-view=lines]")
    settle()
    shot("lines")
    box = page.query_selector("#canvas").bounding_box()
    page.mouse.move(box["x"] + 20, box["y"] + 40)
    settle()
    expect(problems, "hover in lines", "looks at" in page.inner_text("#readout"))
    page.click("[data-view=grid]")
    page.wait_for_selector("#thumbnails figure")
    settle()
    shot("grid")
    page.click("#thumbnails figure >> nth=0")
    settle()
    expect(problems, "a thumbnail opens its head", page.evaluate("shown.view") == "matrix")
    page.evaluate("document.activeElement.blur()")
    before = numbers()
    if page.evaluate("numbersOf('head').length") > 1:
        page.keyboard.press("ArrowRight")
        settle()
        expect(problems, "the right arrow changes the head", numbers() != before)
        page.keyboard.press("ArrowDown")
        settle()
    page.keyboard.press("a")
    settle()
    page.keyboard.press("j")
    page.keyboard.press("j")
    settle()
    expect(problems, "j chooses a row", page.evaluate("shown.row") == min(1, page.evaluate("rowLabels().length - 1")))
    if page.evaluate("data.sentences.length") > 1:
        page.keyboard.press("n")
        settle()
        expect(problems, "n turns to the next sentence", page.evaluate("shown.sentence") == 1)
        page.select_option("#sentence", "0")
        settle()
    page.keyboard.press("v")
    settle()
    page.evaluate("choose({ view: 'matrix' })")
    page.fill("#least", "10")
    settle()
    page.fill("#zoom", "60")
    settle()
    shot("zoomed")
    page.click("#heads th >> nth=5")
    page.click("#heads tbody tr >> nth=0")
    settle()
    expect(problems, "a row of the table chooses a head", page.query_selector("#heads tr[aria-current=true]") is not None)
    shot("whole", full_page=True)


def states(page, problems, shot):
    shot("sentences", full_page=True)
    page.keyboard.press("j")
    expect(problems, "j chooses a point", "line" in page.inner_text("#readout"))
    at = page.evaluate("(() => { const b = canvas.getBoundingClientRect(); return [b.x + placed[0][0], b.y + placed[0][1]]; })()")
    page.mouse.move(*at)
    page.wait_for_timeout(100)
    expect(problems, "hover shows a sentence", "tokens" in page.inner_text("#readout"))
    if page.query_selector("#legend button"):
        page.click("#legend button >> nth=0")
        shot("label")
    page.evaluate("document.activeElement.blur()")
    page.keyboard.press("Escape")
    page.keyboard.press("v")
    page.wait_for_timeout(100)
    shot("tokens")
    page.keyboard.press("c")
    page.wait_for_timeout(100)
    shot("colour")


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("kind", choices=["attention", "states"])
    parser.add_argument("page", type=pathlib.Path)
    parser.add_argument("--shots", type=pathlib.Path, default=pathlib.Path("shots"))
    parser.add_argument("--load-only", action="store_true", help="time loading, and do no more")
    args = parser.parse_args()
    args.shots.mkdir(parents=True, exist_ok=True)
    problems = []
    with sync_playwright() as p:
        browser = p.chromium.launch(executable_path=shutil.which("chromium") or shutil.which("google-chrome"), args=["--no-sandbox"])
        for name, size in WIDTHS.items():
            scheme = "light" if name == "desktop" else "dark"
            page, seconds = open_page(browser, args.page.resolve(), size, scheme, problems)
            print(f"{name}: loaded in {seconds:.2f} s")
            shot = lambda what, **options: page.screenshot(path=args.shots / f"{args.page.stem}-{name}-{what}.png", **options)
            if args.load_only:
                shot("loaded")
                continue
            {"attention": attention, "states": states}[args.kind](page, problems, shot)
            expect(problems, f"{name}: nothing wider than the window ({wide(page)} px)", wide(page) <= 0)
        browser.close()
    for problem in problems:
        print(problem, file=sys.stderr)
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
