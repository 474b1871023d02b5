//! Lines that come one by one, in groups that are as large as waiting allows.

use crate::data::{for_each_line, read_lines};
use crate::error::{Error, Result};
use clap::Args;
use std::path::{Path, PathBuf};
use std::sync::mpsc::{Receiver, TryRecvError, sync_channel};
use std::time::{Duration, Instant};

/// Most lines of a group.
const MOST: usize = 4096;
/// How long a group waits for another line, and how long for all its lines together. A person notices neither.
const PAUSE: Duration = Duration::from_millis(2);
const PATIENCE: Duration = Duration::from_millis(20);

/// Where the lines are that a command answers.
#[derive(Args, Debug)]
pub(super) struct LinesArgs {
    /// One line, in place of --input.
    #[arg(value_name = "TEXT", conflicts_with = "input")]
    text: Option<String>,
    /// What to read, one sentence or series a line; - is standard input.
    #[arg(short, long, default_value = "-")]
    pub(super) input: PathBuf,
}

impl LinesArgs {
    fn text(&self) -> Option<&str> {
        self.text.as_deref().filter(|text| *text != "-")
    }

    /// All lines, where none is still to come: those of a regular file, or the one of the command line.
    pub(super) fn whole(&self) -> Result<Option<Vec<String>>> {
        match self.text() {
            Some(text) => Ok(Some(vec![text.lines().collect::<Vec<_>>().join(" ")])),
            None if self.input.is_file() => read_lines(&self.input).map(Some),
            None => Ok(None),
        }
    }

    /// The lines of a pipe or a terminal.
    pub(super) fn stream(&self) -> LineStream {
        LineStream::open(&self.input)
    }

    /// Calls `answer` with all lines where they are there, else with groups of them as they come.
    pub(super) fn for_each_group(&self, mut answer: impl FnMut(&[String]) -> Result<()>) -> Result<()> {
        if let Some(lines) = self.whole()? {
            return answer(&lines);
        }
        let mut stream = self.stream();
        while let Some(lines) = stream.next()? {
            answer(&lines)?;
        }
        Ok(())
    }

    /// What messages call the place.
    pub(super) fn place(&self) -> &Path {
        if self.text().is_some() { Path::new("<text>") } else { &self.input }
    }
}

/// Lines of a pipe, a terminal or a file, read by a thread of its own.
pub(super) struct LineStream {
    lines: Receiver<Result<String>>,
    /// What came after the last group.
    fault: Option<Error>,
}

impl LineStream {
    /// Reads `path`; `-` is standard input.
    fn open(path: &Path) -> Self {
        let (sender, lines) = sync_channel(MOST);
        let path = path.to_path_buf();
        // The thread ends with the input, with the receiver, or with the process.
        std::thread::spawn(move || {
            let stopped = || Error::message("the reader has gone");
            let read = for_each_line(&path, |_, line| sender.send(Ok(line.trim().to_owned())).map_err(|_| stopped()));
            if let Err(error) = read {
                let _ = sender.send(Err(error));
            }
        });
        Self { lines, fault: None }
    }

    /// The lines that are there, at least one; nothing at the end. Waits for the first as long as it takes.
    ///
    /// # Errors
    /// If the input cannot be read; lines before the fault come first.
    pub(super) fn next(&mut self) -> Result<Option<Vec<String>>> {
        if let Some(fault) = self.fault.take() {
            return Err(fault);
        }
        let Ok(first) = self.lines.recv() else { return Ok(None) };
        let mut group = vec![first?];
        let deadline = Instant::now() + PATIENCE;
        while group.len() < MOST {
            let line = match self.lines.try_recv() {
                Ok(line) => line,
                Err(TryRecvError::Disconnected) => break,
                Err(TryRecvError::Empty) if Instant::now() >= deadline => break,
                Err(TryRecvError::Empty) => match self.lines.recv_timeout(PAUSE) {
                    Ok(line) => line,
                    Err(_) => break,
                },
            };
            match line {
                Ok(line) => group.push(line),
                Err(error) => {
                    self.fault = Some(error);
                    break;
                }
            }
        }
        Ok(Some(group))
    }
}
