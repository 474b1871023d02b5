//! Text for tokenizers to which the end of a line is text as any.

/// Lines with their ends, in pieces whose tokens are those of the whole text. GPT-2's pattern makes a word of a single end of a line;
/// of several characters of white space the last would go by itself, or, if it is a plain space, with the word that follows. So a piece
/// ends where no white space is beside the end of its line, and before a line that begins with one plain space and a word.
#[derive(Debug, Default)]
pub struct Chunks {
    chunk: String,
    can_end: bool,
}

impl Chunks {
    /// Takes the next line, and gives the piece that ends before it, if one does.
    pub fn push(&mut self, line: &str) -> Option<String> {
        let mut characters = line.chars();
        let goes_on = match characters.next() {
            Some(' ') => characters.next().is_none_or(char::is_whitespace),
            first => !self.can_end || first.is_none_or(char::is_whitespace),
        };
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
