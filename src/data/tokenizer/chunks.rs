//! Text for tokenizers to which the end of a line is text as any.

/// Lines with their ends, in pieces whose tokens are those of the whole text: what is cut between is a single end of a line,
/// which GPT-2's pattern makes a word of in any case; of several spaces the last would go with what follows.
#[derive(Debug, Default)]
pub struct Chunks {
    chunk: String,
    can_end: bool,
}

impl Chunks {
    /// Takes the next line, and gives the piece that ends before it, if one does.
    pub fn push(&mut self, line: &str) -> Option<String> {
        let goes_on = !self.can_end || line.is_empty() || line.starts_with(char::is_whitespace);
        let whole = if goes_on || self.chunk.is_empty() { None } else { Some(std::mem::take(&mut self.chunk)) };
        self.chunk += line;
        self.chunk.push('\n');
        self.can_end = !line.is_empty() && !line.ends_with(char::is_whitespace);
        whole
    }

    /// The last piece, if there was a line.
    pub fn finish(self) -> Option<String> {
        Some(self.chunk).filter(|chunk| !chunk.is_empty())
    }
}

/// All [`Chunks`] of some lines.
pub(in crate::data) fn chunks_of<S: AsRef<str>>(lines: &[S]) -> Vec<String> {
    let mut chunks = Chunks::default();
    let mut found: Vec<String> = lines.iter().filter_map(|line| chunks.push(line.as_ref())).collect();
    found.extend(chunks.finish());
    found
}
