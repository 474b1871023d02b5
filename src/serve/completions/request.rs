//! The fields of `/v1/completions`.

use crate::data::EOS;
use crate::data::text::prompt_ids;
use crate::decoding::SamplingConfig;
use crate::serve::catalogue::Entry;
use crate::serve::fault::Fault;
use crate::serve::fields::Fields;
use serde_json::Value;

/// Tokens that are written where the request does not say: OpenAI's default.
const MAX_TOKENS: usize = 16;
/// Most likeliest tokens beside each: OpenAI's limit.
const MAX_LIKELIEST: usize = 5;
/// Most tokens of prompts that an answer repeats, those of each completion counted.
const MAX_ECHOED: usize = 1 << 18;
/// Most texts that end a completion: OpenAI's limit.
const MAX_STOPS: usize = 4;

/// The beginning of a text.
#[derive(Clone, Debug)]
pub(super) struct Prompt {
    /// Its tokens, those before the given ones included.
    pub(super) ids: Vec<u32>,
    /// Tokens that a caller did not give: `</s>`, as if a line had just ended.
    pub(super) n_added: usize,
    /// Whether it is text that ends with white space.
    pub(super) ends_with_space: bool,
}

/// A request.
#[derive(Clone, Debug)]
pub(super) struct Asked {
    pub(super) prompts: Vec<Prompt>,
    /// Completions of each prompt.
    pub(super) n: usize,
    pub(super) max_tokens: usize,
    /// How tokens are drawn; without it the likeliest is taken.
    pub(super) sampling: Option<SamplingConfig>,
    pub(super) seed: u64,
    /// The number of most likely tokens returned with each; without it no probabilities are returned.
    pub(super) n_likeliest: Option<usize>,
    /// Whether the prompt comes before what is written.
    pub(super) echo: bool,
    /// Texts that end a completion and are not part of it.
    pub(super) stops: Vec<String>,
    pub(super) is_stream: bool,
    /// Whether a stream ends with the numbers of tokens.
    pub(super) has_usage: bool,
}

impl Asked {
    /// Reads a request to a language model.
    ///
    /// # Errors
    /// If a field has no such value, wishes what the server does not have, or exceeds a limit.
    pub(super) fn read(fields: &Fields, entry: &Entry, max_tokens: usize, max_choices: usize) -> Result<Self, Fault> {
        refuse_unsupported(fields)?;
        let prompts = prompts(fields, entry)?;
        let n = fields.count("n")?.unwrap_or(1);
        if n == 0 || prompts.len().saturating_mul(n) > max_choices {
            let message = format!("n is {n} for {} prompts; ask for 1 to {max_choices} completions", prompts.len());
            return Err(Fault::bad(message));
        }
        let asked = Self {
            n,
            max_tokens: fields.count("max_tokens")?.unwrap_or(MAX_TOKENS),
            sampling: sampling(fields)?,
            seed: fields.number("seed")?.map_or(entry.seed, |seed| seed as i64 as u64),
            n_likeliest: fields.count("logprobs")?,
            echo: fields.flag("echo")?,
            stops: fields.strings("stop")?,
            is_stream: fields.flag("stream")?,
            has_usage: fields.get("stream_options").is_some_and(|options| options["include_usage"] == true),
            prompts,
        };
        let n_prompt: usize = asked.prompts.iter().map(|prompt| prompt.ids.len()).sum();
        let limits = [
            (
                "echo of n times the tokens of all prompts",
                if asked.echo { n_prompt.saturating_mul(n) } else { 0 },
                MAX_ECHOED,
            ),
            ("max_tokens", asked.max_tokens, max_tokens),
            ("logprobs", asked.n_likeliest.unwrap_or(0), MAX_LIKELIEST),
            ("the number of stop texts", asked.stops.len(), MAX_STOPS),
        ];
        if let Some((field, given, most)) = limits.into_iter().find(|(_, given, most)| given > most) {
            return Err(Fault::bad(format!("{field} is {given}; it may be at most {most}")));
        }
        if asked.stops.iter().any(String::is_empty) {
            return Err(Fault::bad("stop has an empty text, which stands everywhere; leave it out"));
        }
        if asked.max_tokens == 0 && !asked.echo {
            return Err(Fault::bad("max_tokens is 0; that makes sense with echo alone"));
        }
        let longest = asked.prompts.iter().map(|prompt| prompt.ids.len()).max().unwrap_or(0);
        if let Some(most) = entry.in_sight().filter(|most| asked.scores_prompt() && longest > most + 1) {
            let message = format!("the prompt has {longest} tokens, of which echo with logprobs takes {}", most + 1);
            return Err(Fault::bad(message));
        }
        Ok(asked)
    }

    /// Whether the tokens of the prompts are scored.
    pub(super) fn scores_prompt(&self) -> bool {
        self.echo && self.n_likeliest.is_some()
    }
}

/// Fields whose effect the server does not have, with the value that has none.
fn refuse_unsupported(fields: &Fields) -> Result<(), Fault> {
    for (field, neutral) in [("frequency_penalty", 0.0), ("presence_penalty", 0.0)] {
        if fields.number(field)?.is_some_and(|value| value != neutral) {
            return Err(Fault::bad(format!("{field} is not supported; leave it out")));
        }
    }
    if fields.get("suffix").is_some_and(|suffix| suffix != "") {
        return Err(Fault::bad("suffix is not supported: the models write from left to right; leave it out"));
    }
    let has_bias = |bias: &Value| bias.as_object().is_none_or(|bias| !bias.is_empty());
    if fields.get("logit_bias").is_some_and(has_bias) {
        return Err(Fault::bad("logit_bias is not supported; leave it out"));
    }
    let n = fields.count("n")?.unwrap_or(1);
    match fields.count("best_of")?.filter(|best_of| *best_of != n) {
        Some(best_of) => {
            Err(Fault::bad(format!("best_of is {best_of} and n is {n}; only the same number is supported")))
        }
        None => Ok(()),
    }
}

/// `temperature`, `top_p` and `top_k`; temperature 0 takes the likeliest token each time.
fn sampling(fields: &Fields) -> Result<Option<SamplingConfig>, Fault> {
    let default = SamplingConfig::default();
    let config = SamplingConfig {
        temperature: fields.number("temperature")?.unwrap_or(default.temperature),
        top_p: fields.number("top_p")?.unwrap_or(default.top_p),
        top_k: fields.count("top_k")?.unwrap_or(default.top_k),
    };
    if config.temperature == 0.0 {
        return Ok(None);
    }
    config.validate().map_err(|error| Fault::bad(error.to_string().replace("decoding.sampling.", "")))?;
    Ok(Some(config))
}

/// A text, a list of texts, a list of token ids, or a list of such lists.
fn prompts(fields: &Fields, entry: &Entry) -> Result<Vec<Prompt>, Fault> {
    let wrong = || Fault::bad("prompt is a string, a list of strings, a list of token ids, or a list of such lists");
    let prompts = match fields.get("prompt") {
        // OpenAI's models go on with a document that begins.
        None => vec![Prompt::of_text("", entry)],
        Some(Value::String(text)) => vec![Prompt::of_text(text, entry)],
        Some(Value::Array(items)) if items.is_empty() => return Err(wrong()),
        Some(Value::Array(items)) if items.iter().all(Value::is_u64) => vec![Prompt::of_ids(items, entry)?],
        Some(Value::Array(items)) => {
            let one = |item: &Value| match item {
                Value::String(text) => Ok(Prompt::of_text(text, entry)),
                Value::Array(ids) => Prompt::of_ids(ids, entry),
                _ => Err(wrong()),
            };
            items.iter().map(one).collect::<Result<_, _>>()?
        }
        Some(_) => return Err(wrong()),
    };
    // A model that has only so much in sight reads the end of a longer prompt; others would read all of it.
    for (i, prompt) in prompts.iter().enumerate() {
        entry.check_text_length(&format!("prompt[{i}]"), prompt.ids.len())?;
    }
    Ok(prompts)
}

impl Prompt {
    fn of_text(text: &str, entry: &Entry) -> Self {
        let tokenizer = entry.tokenizers.target();
        let has_first = tokenizer.has_lines() && !text.is_empty();
        Self {
            ids: prompt_ids(text, tokenizer),
            n_added: usize::from(!has_first),
            ends_with_space: text.ends_with([' ', '\t']),
        }
    }

    fn of_ids(ids: &[Value], entry: &Entry) -> Result<Self, Fault> {
        let n_tokens = entry.tokenizers.target().vocab_size() as u64;
        let id = |value: &Value| match value.as_u64().filter(|id| *id < n_tokens) {
            Some(id) => Ok(id as u32),
            None => Err(Fault::bad(format!("prompt has {value}; token ids are whole numbers below {n_tokens}"))),
        };
        let given: Vec<u32> = ids.iter().map(id).collect::<Result<_, _>>()?;
        // Something follows something.
        let n_added = usize::from(given.is_empty() || !entry.tokenizers.target().has_lines());
        Ok(Self { ids: vec![EOS; n_added].into_iter().chain(given).collect(), n_added, ends_with_space: false })
    }
}
