//! What endpoints answer.

use super::schema::{boolean, choice, integer, integer_or_null, list, list_of, named, number, object, string, texts};
use serde_json::{Value, json};

/// All answers that have a name.
pub(super) fn schemas() -> Value {
    json!({
        "Fault": object([("error!", string("What is wrong, where, and what to do."))]),
        "OpenAiFault": object([("error!", object([
            ("message!", string("What is wrong, where, and what to do.")),
            ("type!", string("Its kind.")),
            ("param", json!({ "type": "null" })),
            ("code", json!({ "type": ["string", "null"] })),
        ]))]),
        "Translation": object([
            ("translatedText!", texts("The translation of each text, in the form in which q was given.")),
            ("alternatives", json!({
                "type": "array",
                "items": { "type": ["string", "array"] },
                "description": "The other hypotheses of each text, best first, if they were asked for.",
            })),
            ("notes", list_of("string", "Words that the vocabulary lacks, and translations that were cut at the length cap.")),
        ]),
        "Language": object([
            ("code!", string("The code.")),
            ("name!", string("The same.")),
            ("targets!", list_of("string", "The languages that it can be translated to.")),
        ]),
        "Tokens": object([
            ("tokens!", list_of("string", "The tokens.")),
            ("ids!", list_of("integer", "Their numbers in the vocabulary.")),
        ]),
        "Score": object([
            ("log_probability!", number("The sum over all tokens, in nats.")),
            ("perplexity!", number("Of each token, the end included.")),
            ("tokens!", list_of("string", "The tokens, the end last.")),
            ("token_log_probabilities!", list_of("number", "Of each token, in nats.")),
        ]),
        "Candidate": object(candidate()),
        "Step": step(),
        "Map": map(),
        "Attention": attention(),
        "Completion": completion(),
        "Model": object([
            ("id!", string("The name of the run.")),
            ("object!", choice(&["model"], "What this is.")),
            ("created!", integer("Not known: 0.")),
            ("owned_by!", string("lookback.")),
        ]),
    })
}

fn candidate() -> [(&'static str, Value); 3] {
    [
        ("token!", string("The token.")),
        ("id!", integer("Its number in the vocabulary.")),
        ("probability!", number("Its probability at this step.")),
    ]
}

fn step() -> Value {
    let [token, id, probability] = candidate();
    object([
        token,
        id,
        probability,
        ("given!", boolean("Whether the request gave it.")),
        ("candidates!", list(named("Candidate"), "The five likeliest tokens at this step.")),
    ])
}

fn map() -> Value {
    let parts = ["cross", "encoder", "decoder", "memory", "encoder-memory", "encoder-memory-backward"];
    let words = "cross: the target looks at the source; encoder: the source at itself; decoder: the target at what comes \
                 before; the others: the share of each token that a recurrence keeps.";
    object([
        ("part!", choice(&parts, words)),
        ("layer!", integer_or_null("From 1; null for the one attention of a recurrent model.")),
        ("head!", integer_or_null("From 1; null where there is but one.")),
        ("n_rows!", integer("Positions that look.")),
        ("n_columns!", integer("Positions that are looked at.")),
        ("weights!", list_of("number", "Row by row.")),
    ])
}

fn attention() -> Value {
    let target = "What was written, token by token. The rows of decoder maps are the inputs of the steps: <s>, then each \
                  token but the last; of a language model, every token that was read.";
    object([
        ("model!", string("The name of the run.")),
        ("is_text!", boolean("Whether it is a language model.")),
        ("source!", list_of("string", "The tokens of q, the end symbol last; of a language model without it.")),
        ("blank!", list_of("integer", "Positions in the source, from 1, that were replaced by <unk>.")),
        ("without!", list_of("string", "Heads that were switched off.")),
        ("target!", list(named("Step"), target)),
        ("text!", string("The same as a person would write it.")),
        ("is_complete!", boolean("Whether the model ended it.")),
        ("maps!", list(named("Map"), "By part, layer and head; none of models that have nothing to show.")),
        ("notes!", list_of("string", "What the reader should know.")),
    ])
}

fn completion() -> Value {
    let choice_of_prompt = object([
        ("text!", string("What was written.")),
        ("index!", integer("Which choice this is.")),
        ("logprobs!", json!({ "type": ["object", "null"], "description": "Tokens with their log-probabilities." })),
        ("finish_reason!", json!({ "type": ["string", "null"], "enum": ["stop", "length", null] })),
    ]);
    object([
        ("id!", string("Another one for each request.")),
        ("object!", choice(&["text_completion"], "What this is.")),
        ("created!", integer("Seconds since 1970.")),
        ("model!", string("The name of the run.")),
        ("choices!", list(choice_of_prompt, "One for each n of each prompt.")),
        (
            "usage",
            json!({
                "type": ["object", "null"],
                "description": "Tokens of the prompts (prompt_tokens), those that were written (completion_tokens), and their sum.",
            }),
        ),
    ])
}
