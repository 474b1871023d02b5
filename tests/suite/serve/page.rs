//! The page at `/`, driven in Chromium as a reader would.

use super::server::Server;
use crate::cli::trained;
use crate::support::browser::Browser;
use crate::training::{assert_says, language_model};
use serde_json::json;

const READY: &str = "document.body.dataset.state === 'ready'";
const ONE: &str = "section[data-column=\"1\"]";
const TWO: &str = "section[data-column=\"2\"]";

/// The tokens of a side as they are shown, without the end symbol.
fn tokens(browser: &mut Browser, column: &str, side: &str) -> Vec<String> {
    let all = format!(
        "[...document.querySelectorAll('{column} [data-side={side}] [data-token]')].map(e => e.title.split(': ')[0])"
    );
    let all = browser.value(&all);
    let texts = all.as_array().unwrap().iter().map(|token| token.as_str().unwrap().to_string());
    texts.filter(|token| token != "</s>").collect()
}

fn address(browser: &mut Browser) -> String {
    browser.text("decodeURIComponent(location.hash)")
}

/// A browser at the page, without motion; none if there is no Chromium.
fn open(server: &Server, state: &str) -> Option<Browser> {
    let mut browser = Browser::start()?;
    browser.prefer(&[("prefers-reduced-motion", "reduce")]);
    browser.resize(1280, 900);
    browser.open(&format!("http://{}/{state}", server.address()));
    browser.wait(READY);
    Some(browser)
}

fn translated(server: &Server, q: &str) -> String {
    server.post("/translate", &json!({ "q": q })).1["translatedText"].as_str().unwrap().to_string()
}

#[test]
fn a_sentence_is_translated_and_taken_apart() {
    let server = Server::start(trained(), &["--run", "run"]);
    let Some(mut browser) = open(&server, "") else { return };
    assert_eq!(browser.value("document.getElementById('empty').hidden"), false);
    // Typing translates after a pause.
    browser.value("document.getElementById('q').focus()");
    for key in ["a", " ", "b", " ", "c"] {
        browser.press(key);
    }
    browser.wait("document.querySelector('[data-side=target] [data-token]') !== null");
    browser.wait(READY);
    assert_eq!(tokens(&mut browser, ONE, "source"), ["a", "b", "c"]);
    let own = tokens(&mut browser, ONE, "target");
    assert_eq!(own.join(" "), translated(&server, "a b c"));
    assert_says(&browser.text("document.getElementById('status').textContent"), &[&own.join(" ")]);
    assert_says(&address(&mut browser), &["q=a+b+c", "model=run"]);
    assert!(browser.value("document.querySelectorAll('.stage svg path').length").as_u64() > Some(2), "lines are drawn");
    browser.shot("translated");

    // Another token at the first step: the model goes on from it.
    browser.click("[data-side=target] [data-token=\"1\"]");
    assert_eq!(browser.value("document.querySelectorAll('[data-candidate]').length"), 5);
    browser.shot("candidates");
    let other = browser.text("document.querySelectorAll('[data-candidate]')[1].title");
    let id = browser.text("document.querySelectorAll('[data-candidate]')[1].dataset.candidate");
    browser.value("document.querySelectorAll('[data-candidate]')[1].click()");
    browser.wait(READY);
    let changed = tokens(&mut browser, ONE, "target");
    assert_eq!(changed.first(), Some(&other));
    assert_says(&address(&mut browser), &[&format!("prefix={id}")]);
    assert_says(&browser.text("document.querySelector('.change').innerText"), &["ntouched"]);
    browser.shot("given");

    // The address alone brings all of it back.
    let url = browser.text("location.href");
    browser.open(&url);
    browser.wait(READY);
    assert_eq!(tokens(&mut browser, ONE, "target"), changed);
    browser.click("[data-undo]");
    browser.wait(READY);
    assert_eq!(tokens(&mut browser, ONE, "target"), own);

    // A source token that is blanked, and a head that is switched off.
    browser.click("[data-side=source] [data-token=\"2\"]");
    browser.wait(READY);
    assert_says(&address(&mut browser), &["blank=2"]);
    let answer = server.post("/attention", &json!({ "q": "a b c", "blank": [2] })).1;
    let expected: Vec<String> = answer["text"].as_str().unwrap().split(' ').map(str::to_owned).collect();
    assert_eq!(tokens(&mut browser, ONE, "target"), expected);
    browser.click("[data-side=source] [data-token=\"2\"]");
    browser.click("[data-switch=\"cross.1.1\"]");
    browser.wait(READY);
    assert_says(&address(&mut browser), &["off=cross.1.1"]);
    browser.shot("off");
    assert_eq!(browser.faults, Vec::<String>::new());
}

#[test]
fn the_keyboard_reaches_everything() {
    let server = Server::start(trained(), &["--run", "run", "--run", "run"]);
    let Some(mut browser) = open(&server, "#q=a+b+c+d&model=run") else { return };
    // A list that has the focus takes no shortcut away.
    browser.value("document.getElementById('model').focus()");
    assert_eq!(browser.text("document.activeElement.tagName"), "SELECT");
    for (key, expected) in
        [("ArrowRight", "at=1"), ("ArrowRight", "at=2"), ("ArrowLeft", "at=1"), ("l", "layer=1"), ("h", "head=1")]
    {
        browser.press(key);
        browser.wait(&format!("location.hash.includes('{expected}')"));
    }
    assert_says(&browser.text("document.querySelector('.reading').innerText"), &["is step 1 of", "It looks at"]);
    browser.press("x");
    browser.wait("location.hash.includes('off=cross.1.1')");
    browser.wait(READY);
    browser.press("x");
    browser.press("a");
    browser.press("v");
    browser.wait("location.hash.includes('view=') && !location.hash.includes('layer')");
    browser.wait(READY);
    browser.press("/");
    assert_eq!(browser.text("document.activeElement.id"), "q");
    // A field for text keeps its keys.
    browser.press("End");
    browser.press("l");
    assert_eq!(browser.text("document.getElementById('q').value"), "a b c dl");
    assert_eq!(browser.faults, Vec::<String>::new());
}

#[test]
fn two_models_stand_side_by_side() {
    let server = Server::start(trained(), &["--run", "run", "--run", "run", "--int8"]);
    let Some(mut browser) = open(&server, "#q=a+b+c&model=run&with=run-2") else { return };
    let [one, two] = [ONE, TWO].map(|column| tokens(&mut browser, column, "target"));
    assert_eq!(one, two);
    // Each goes its own way from a token on; what is blanked is so for both.
    browser.click(&format!("{TWO} [data-side=target] [data-token=\"1\"]"));
    browser.value(&format!("document.querySelectorAll('{TWO} [data-candidate]')[1].click()"));
    browser.wait(READY);
    assert_eq!(tokens(&mut browser, ONE, "target"), one);
    assert_ne!(tokens(&mut browser, TWO, "target"), two);
    browser.click(&format!("{ONE} [data-side=source] [data-token=\"1\"]"));
    browser.wait(READY);
    assert_says(&tokens(&mut browser, TWO, "source").join(" "), &["b c"]);
    assert_says(&address(&mut browser), &["blank=1", "with=run-2", "prefix2="]);
    browser.shot("two");
    assert_eq!(browser.faults, Vec::<String>::new());
}

#[test]
fn a_language_model_goes_on_with_a_text() {
    let server = Server::start(language_model(), &["--run", "run"]);
    let Some(mut browser) = open(&server, "#q=ab&max=10") else { return };
    assert_eq!(tokens(&mut browser, ONE, "target"), ["c", "d", "e", "f"]);
    assert_eq!(browser.text("document.getElementById('go').textContent"), "Go on");
    browser.shot("text");
    assert_eq!(browser.faults, Vec::<String>::new());
}

#[test]
fn the_whole_computation_opens_in_a_tab_of_its_own() {
    let server = Server::start(trained(), &["--run", "run", "--token", "sesame"]);
    let Some(mut browser) = open(&server, "#q=a+b+c&at=2") else { return };
    // The page itself needs no token; what it asks does.
    assert_eq!(browser.value("document.getElementById('enter').hidden"), false);
    let enter = |browser: &mut Browser, token: &str| {
        browser.value(&format!(
            "document.getElementById('token').value = '{token}'; document.getElementById('enter').requestSubmit()"
        ));
    };
    enter(&mut browser, "wrong");
    browser.wait("document.getElementById('fault').textContent !== ''");
    enter(&mut browser, "sesame");
    browser.wait("document.querySelector('[data-explain]') !== null");
    browser.click("[data-explain]");
    let title = |browser: &mut Browser| {
        let tabs = browser.send("Target.getTargets", json!({}));
        let titles =
            tabs["targetInfos"].as_array().unwrap().iter().map(|tab| tab["title"].as_str().unwrap().to_string());
        titles.into_iter().find(|title| title.contains('→'))
    };
    let found = (0..200).find_map(|_| {
        std::thread::sleep(std::time::Duration::from_millis(50));
        title(&mut browser)
    });
    assert_says(&found.expect("a tab opens"), &["a b c → "]);
    assert_eq!(browser.faults, Vec::<String>::new());
}

#[test]
fn it_fits_every_screen_and_no_text_is_markup() {
    let server = Server::start(trained(), &["--run", "run"]);
    let Some(mut browser) = open(&server, "") else { return };
    let long = "a b c d e ".repeat(12);
    let hostile = "<img src=x onerror=window.bad=1> <script>window.bad=1</script> \"a' & 😀";
    for q in ["a b", long.trim(), hostile] {
        for (width, scheme) in [(1440, "light"), (768, "dark"), (390, "light"), (390, "dark")] {
            browser.prefer(&[("prefers-reduced-motion", "reduce"), ("prefers-color-scheme", scheme)]);
            browser.resize(width, 900);
            browser.value(&format!("location.hash = new URLSearchParams({{ q: {} }})", json!(q)));
            browser.wait("document.querySelector('[data-side=target] [data-token]') !== null");
            browser.wait(READY);
            let overflow = browser.value("document.documentElement.scrollWidth - innerWidth");
            assert!(overflow.as_i64() <= Some(0), "{overflow} pixels too wide at {width}: {q}");
            let small = "[...document.querySelectorAll('button, select, textarea')].filter(e => e.checkVisibility() \
                         && e.getBoundingClientRect().height < 24).map(e => e.outerHTML).join('\\n')";
            assert_eq!(browser.text(small), "", "at {width}");
            browser.shot(&format!("{width}-{scheme}-{}", q.len()));
        }
    }
    assert_eq!(browser.value("window.bad === undefined"), true);
    assert_eq!(browser.faults, Vec::<String>::new());
}
