//! `lookback serve`.

use super::decoding::{DecodingArgs, SetArgs};
use super::place::PlaceArgs;
use super::{load_any, print};
use crate::error::{Error, Result};
use crate::models::{Ensemble, PreparedModel};
use crate::notice::{self, Level};
use crate::serve::{Pair, Served, ServerConfig, serve};
use crate::signal;
use clap::Args;
use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// A year in seconds: clocks do not reach to the end of all numbers.
const LONGEST: u64 = 365 * 24 * 3600;

#[derive(Args, Debug)]
#[command(
    after_help = "In a browser the address is a page: a sentence, what the model writes, where it looks, and what
it would have written otherwise. Clients of LibreTranslate can use it (POST /translate, GET
/languages), and those of OpenAI's completions, for language models (POST /v1/completions).
There are also /attention, /explain, /score, /tokenize, /info, /health and /metrics; /docs and the
book (docs/guides/serving.md) describe them. Ctrl-C and SIGTERM answer what was accepted and end the
program. The address is printed on standard output.

Examples:
  lookback serve --run runs/first --languages de-en --beam 5
  lookback serve --run runs/first --languages de-en --run runs/second --languages en-de
  lookback serve --run runs/rnn --run runs/transformer           two models side by side on the page
  curl -d 'q=ein Hund' http://127.0.0.1:5000/translate
  LOOKBACK_TOKEN=secret lookback serve --run runs/first --host 0.0.0.0"
)]
pub(super) struct ServeArgs {
    /// The run folder; given more than once, a request chooses by name or by languages.
    #[arg(short, long, required = true)]
    run: Vec<PathBuf>,
    /// Source and target language of each run in turn, as de-en [default: the name of the run folder for both].
    #[arg(long, value_name = "SOURCE-TARGET")]
    languages: Vec<String>,
    /// The address to listen on; others than this machine's own need a token.
    #[arg(long, default_value = "127.0.0.1")]
    host: String,
    /// The port to listen on; 0 is any free one.
    #[arg(long, default_value_t = 5000)]
    port: u16,
    /// What callers have to send as `Authorization: Bearer TOKEN`, or as `api_key`.
    #[arg(long, env = "LOOKBACK_TOKEN", hide_env_values = true)]
    token: Option<String>,
    /// Listen on other addresses without a token.
    #[arg(long, conflicts_with = "token")]
    no_token: bool,
    /// Milliseconds that an idle model waits for further sentences before it begins a batch.
    #[arg(long, value_name = "MS", default_value_t = 5, value_parser = clap::value_parser!(u64).range(..=1000 * LONGEST))]
    max_wait: u64,
    /// Seconds that a request may take.
    #[arg(long, value_name = "SECONDS", default_value_t = 60, value_parser = clap::value_parser!(u64).range(1..=LONGEST))]
    timeout: u64,
    /// Requests that may wait or be worked on; further ones get status 503.
    #[arg(long, value_name = "N", default_value_t = 256, value_parser = clap::value_parser!(u32).range(1..))]
    max_queue: u32,
    /// Lines of a request.
    #[arg(long, value_name = "N", default_value_t = 1000, value_parser = clap::value_parser!(u32).range(1..))]
    max_lines: u32,
    /// Tokens that a language model writes for a completion.
    #[arg(long, value_name = "N", default_value_t = 4096, value_parser = clap::value_parser!(u32).range(1..))]
    max_tokens: u32,
    /// Bytes of a request's body.
    #[arg(long, value_name = "N", default_value_t = 1 << 20, value_parser = clap::value_parser!(u32).range(1..))]
    max_body: u32,
    #[command(flatten)]
    place: PlaceArgs,
    /// The checkpoint to take [default: the best].
    #[arg(short, long, value_name = "NAME")]
    checkpoint: Option<String>,
    #[command(flatten, next_help_heading = "Decoding")]
    decoding: DecodingArgs,
    #[command(flatten, next_help_heading = "Decoding")]
    set: SetArgs,
}

pub(super) fn run(args: ServeArgs) -> Result<()> {
    let pairs = args.pairs()?;
    if args.decoding.has_n_best() {
        let message = "--n-best is not for serve: a request asks for more translations with the field alternatives";
        return Err(Error::message(message));
    }
    let listener = args.bind()?;
    let mut runs = Vec::new();
    for (i, path) in args.run.iter().enumerate() {
        runs.push(args.load(path, pairs.get(i).cloned())?);
    }
    let only_text = runs.iter().all(|run| !run.loaded.config.model.reads_source());
    if let Some(option) = args.decoding.first_given().filter(|option| only_text && *option != "--max-source-len") {
        let message = format!("{option} has no effect on language models: each request says how its text is written");
        return Err(Error::message(message));
    }
    // From here on a signal ends the server in order.
    let _listening = signal::listen();
    let address = listener.local_addr().map_err(Error::io("the server"))?;
    print(&format!("listening on http://{address}\n"))?;
    serve(listener, runs, args.config(), signal::requested)
}

impl ServeArgs {
    /// The languages of the runs.
    fn pairs(&self) -> Result<Vec<Pair>> {
        let (n_runs, n_pairs) = (self.run.len(), self.languages.len());
        if n_pairs != 0 && n_pairs != n_runs {
            let message =
                format!("--languages is given {n_pairs} times and --run {n_runs} times; give one for each run");
            return Err(Error::message(message));
        }
        self.languages.iter().map(|text| Pair::parse(text)).collect()
    }

    /// Listens, which comes before models are loaded: that takes longer than to see that a port is taken.
    fn bind(&self) -> Result<TcpListener> {
        let Self { host, port, .. } = self;
        if self.token.as_deref().is_some_and(|token| token.trim().is_empty()) {
            return Err(Error::message("--token is empty; give one that is hard to guess"));
        }
        if self.token.as_deref().is_some_and(|token| !token.bytes().all(|byte| byte.is_ascii_graphic())) {
            return Err(Error::message(
                "--token has a character that a header cannot hold; take letters, digits and signs of ASCII",
            ));
        }
        let refused = |error| Error::message(format!("--host {host} --port {port}: {error}"));
        let listener = TcpListener::bind((host.as_str(), *port)).map_err(refused)?;
        let address = listener.local_addr().map_err(refused)?;
        if !address.ip().is_loopback() && self.token.is_none() && !self.no_token {
            let message = format!(
                "--host {host} lets other machines in; give --token TOKEN or set LOOKBACK_TOKEN, or say --no-token"
            );
            return Err(Error::message(message));
        }
        Ok(listener)
    }

    fn load(&self, path: &Path, pair: Option<Pair>) -> Result<Served> {
        let mut loaded = load_any(path, &self.place, self.checkpoint.as_deref())?;
        let config = &loaded.config;
        if config.model.family().answers().is_some() {
            let (what, _) = config.use_of("");
            return Err(Error::file(path, format!("writes no text: `{what}` is the command for it")));
        }
        let is_text = !config.model.reads_source();
        let decoding = self.decoding.apply(&self.set.decoding_of(path)?)?;
        let seed = self.decoding.sampling.seed.unwrap_or(config.seed);
        let prepared = match is_text {
            true => Ensemble::new(vec![PreparedModel::new(loaded.model.clone())]),
            false => self.decoding.prepare(std::slice::from_mut(&mut loaded))?,
        };
        let whole = path.canonicalize().map_err(Error::io(path))?;
        let name = whole.file_name().unwrap_or(whole.as_os_str()).to_string_lossy().into_owned();
        Ok(Served { name, pair, loaded, prepared, decoding, seed })
    }

    fn config(&self) -> ServerConfig {
        ServerConfig {
            token: self.token.clone(),
            max_wait: Duration::from_millis(self.max_wait),
            timeout: Duration::from_secs(self.timeout),
            max_queue: self.max_queue as usize,
            max_lines: self.max_lines as usize,
            max_tokens: self.max_tokens as usize,
            max_body: self.max_body as usize,
            is_verbose: notice::is_said(Level::Verbose),
        }
    }
}
