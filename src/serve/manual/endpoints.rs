//! Every endpoint: what it takes and what it answers.

use super::answers::schemas;
use super::schema::{boolean, choice, integer, list, list_of, named, number, object, one_or_list, string, texts};
use serde_json::{Map, Value, json};

/// The description in the form of OpenAPI 3.1.
pub(in crate::serve) fn openapi() -> Value {
    json!({
        "openapi": "3.1.0",
        "info": {
            "title": "Lookback",
            "version": env!("CARGO_PKG_VERSION"),
            "description": "Models of run folders over HTTP. Bodies are JSON or forms; fields that are not named here are ignored. \
                            A server that has a token wants it as Authorization: Bearer TOKEN or as the field api_key.",
        },
        "servers": [{ "url": "/" }],
        "security": [{}, { "bearer": [] }],
        "paths": paths(),
        "components": {
            "schemas": schemas(),
            "securitySchemes": { "bearer": { "type": "http", "scheme": "bearer" } },
        },
    })
}

fn paths() -> Value {
    let example = json!({ "q": "ein Hund läuft" });
    json!({
        "/translate": post(
            "Translates sentences, as LibreTranslate does. Each line of a text is a sentence.",
            with_run([
                ("q!", texts("What to translate.")),
                ("format", choice(&["text"], "The only one.")),
                ("alternatives", integer("Other hypotheses that are wanted: at most the beam size less one.")),
            ]),
            json!({ "q": ["ein Hund läuft", "zwei Kinder"], "alternatives": 2 }),
            "The translations.",
            named("Translation"),
        ),
        "/languages": get(
            "The languages of the runs that translate.",
            "The source languages.",
            list(named("Language"), "One for each source language."),
        ),
        "/attention": post(
            "One sentence with all that the page at / shows: tokens, probabilities, candidates and attention maps. It can be \
             given a beginning of the target, a source without some words, and a model without some heads.",
            with_run([
                ("q!", string("The sentence; for a language model the beginning of a text.")),
                ("translation", string("The whole target, if it is given.")),
                ("prefix", list_of("integer", "Ids of tokens that the target begins with; the model goes on from there.")),
                ("blank", list_of("integer", "Positions of source tokens, from 1, that are replaced by <unk>.")),
                ("without", without()),
                ("max_tokens", integer("Tokens that a language model writes at most; 50 if it is missing.")),
            ]),
            json!({ "q": "ein Hund läuft", "blank": [2] }),
            "Tokens, probabilities and maps.",
            named("Attention"),
        ),
        "/explain": post_page(post(
            "Every number of decoding one sentence, as `lookback explain` writes it.",
            with_run([
                ("q!", string("The sentence; for a language model the beginning of a text.")),
                ("translation", string("The target, if it is given.")),
                ("ids", list_of("integer", "The same as ids of tokens, the end symbol included, as `/attention` gives them.")),
                ("step", integer("One step, from 1.")),
                ("layer", integer("One layer, from 1.")),
                ("head", integer("One head, from 1.")),
                ("without", without()),
                ("max_tokens", integer("Tokens that a language model writes at most; 20 if it is missing.")),
                ("format", choice(&["json", "html"], "The explanation as JSON, or as a page.")),
            ]),
            json!({ "q": "ein Hund läuft", "step": 1 }),
            "What `lookback explain` writes with --json, or the page of --html.",
            json!({ "type": "object" }),
        ), "text/html"),
        "/score": post(
            "The log-probabilities of given translations.",
            with_run([("q!", texts("The sources.")), ("translation!", texts("A target for each source."))]),
            json!({ "q": "ein Hund läuft", "translation": "a dog is running" }),
            "A score, or a list of scores.",
            one_or_list(named("Score")),
        ),
        "/tokenize": post(
            "The tokens of texts.",
            with_run([
                ("q!", texts("The texts.")),
                ("side", choice(&["source", "target"], "Whose tokens they are; the source's if it is missing.")),
            ]),
            example,
            "Tokens and ids, or a list of them.",
            one_or_list(named("Tokens")),
        ),
        "/v1/completions": for_openai(post_page(post(
            "Goes on with a text, as OpenAI's completions do. For language models.",
            completion_fields(),
            json!({ "prompt": "A man in a", "max_tokens": 20, "temperature": 0 }),
            "The completion; with stream, such objects as server-sent events, then [DONE].",
            named("Completion"),
        ), "text/event-stream")),
        "/v1/models": for_openai(get(
            "The language models.",
            "One for each run.",
            object([("object!", choice(&["list"], "What this is.")), ("data!", list(named("Model"), "The models."))]),
        )),
        "/v1/models/{model}": for_openai(with_model_in_path(get("One language model.", "The model.", named("Model")))),
        "/info": get(
            "Runs, vocabularies, checkpoints and limits.",
            "What the server has.",
            object([
                ("version!", string("That of the program.")),
                ("runs!", list_of("object", "One for each run: its name, its languages, its sizes, and its heads (without).")),
                ("max_lines!", integer("Lines of a request.")),
                ("max_tokens!", integer("Tokens that a language model writes for a completion.")),
                ("max_body!", integer("Bytes of a request.")),
                ("max_queue!", integer("Requests that may wait.")),
                ("timeout_seconds!", number("Seconds that a request may take.")),
            ]),
        ),
        "/health": get(
            "Whether the server answers. Needs no token.",
            "It does.",
            object([("status!", choice(&["ok"], "It does."))]),
        ),
        "/metrics": get_text("Counts of requests, batches and tokens.", "In the format of Prometheus.", "text/plain"),
        "/openapi.json": get("This description. Needs no token.", "OpenAPI 3.1.", json!({ "type": "object" })),
        "/docs": get_text("This description as a page. Needs no token.", "The page.", "text/html"),
        "/": get_text("The page on which a sentence is translated and taken apart. Needs no token.", "The page.", "text/html"),
    })
}

fn without() -> Value {
    list_of(
        "string",
        "Heads that are switched off: part, layer and head as in cross.2.1. /info lists those of each run.",
    )
}

fn completion_fields() -> Value {
    let prompt = json!({
        "oneOf": [
            { "type": "string" },
            { "type": "array", "items": { "type": "string" } },
            { "type": "array", "items": { "type": "integer" } },
            { "type": "array", "items": { "type": "array", "items": { "type": "integer" } } },
        ],
        "description": "The beginning of a text, or several; texts or token ids. Of one that is longer than the model has in sight, the end is read.",
    });
    let usage = object([("include_usage", boolean("Whether the last event has the numbers of tokens."))]);
    object([
        ("model", string("The name of the run; may be missing if there is one language model.")),
        ("prompt", prompt),
        ("max_tokens", integer("Tokens that are written; 16 if it is missing.")),
        ("temperature", number("1 if it is missing; 0 takes the likeliest token each time.")),
        ("top_p", number("Draws from the likeliest tokens that together have this probability.")),
        ("top_k", integer("Draws from this many of the likeliest tokens; 0 is all.")),
        ("n", integer("Completions of each prompt.")),
        ("stream", boolean("Whether pieces are sent as they come.")),
        ("stream_options", usage),
        ("logprobs", integer("The log-probability of each token and, at most 5, of the likeliest in its place.")),
        ("echo", boolean("Whether the prompt comes before what is written.")),
        ("stop", texts("Up to four texts that end a completion and are not part of it.")),
        ("seed", integer("What is drawn depends on it; the run's if it is missing.")),
    ])
}

/// Fields with those that choose a run, and the token.
fn with_run<const N: usize>(fields: [(&str, Value); N]) -> Value {
    let mut all = object(fields);
    let more = object([
        ("model", string("The name of the run, as /info has it.")),
        ("source", string("The code of the source language, or auto.")),
        ("target", string("The code of the target language.")),
        ("api_key", string("The token, if the server has one and it is not sent as Authorization: Bearer.")),
    ]);
    for (name, schema) in more["properties"].as_object().into_iter().flatten() {
        all["properties"][name] = schema.clone();
    }
    all
}

fn responses(words: &str, content: Value) -> Value {
    let fault = json!({ "application/json": { "schema": named("Fault") } });
    json!({
        "200": { "description": words, "content": content },
        "default": { "description": "What is wrong, where, and what to do.", "content": fault },
    })
}

fn get(summary: &str, words: &str, answer: Value) -> Value {
    json!({ "get": { "summary": summary, "responses": responses(words, json!({ "application/json": { "schema": answer } })) } })
}

fn get_text(summary: &str, words: &str, kind: &str) -> Value {
    let content = Map::from_iter([(kind.to_owned(), json!({ "schema": { "type": "string" } }))]);
    json!({ "get": { "summary": summary, "responses": responses(words, content.into()) } })
}

fn post(summary: &str, fields: Value, example: Value, words: &str, answer: Value) -> Value {
    json!({ "post": {
        "summary": summary,
        "requestBody": { "required": true, "content": {
            "application/json": { "schema": fields, "example": example },
            "application/x-www-form-urlencoded": { "schema": fields },
        } },
        "responses": responses(words, json!({ "application/json": { "schema": answer } })),
    } })
}

/// The same, which can answer with a text of a kind too.
fn post_page(mut endpoint: Value, kind: &str) -> Value {
    endpoint["post"]["responses"]["200"]["content"][kind] = json!({ "schema": { "type": "string" } });
    endpoint
}

/// The same, whose faults OpenAI's clients read.
fn for_openai(mut endpoint: Value) -> Value {
    for operation in endpoint.as_object_mut().into_iter().flat_map(|methods| methods.values_mut()) {
        operation["responses"]["default"]["content"]["application/json"]["schema"] = named("OpenAiFault");
    }
    endpoint
}

fn with_model_in_path(mut endpoint: Value) -> Value {
    let schema = json!({ "type": "string" });
    endpoint["get"]["parameters"] = json!([{ "name": "model", "in": "path", "required": true, "schema": schema, "description": "The name of the run." }]);
    endpoint
}
