//! Tokenizers that were trained elsewhere, of imported models.

use super::file::Saved;
use super::side::Side;
use super::{BERT_MASK, Cutter, HIDDEN, SubwordConfig, TokenizerConfig, Tokenizers, TokenizersConfig};

impl Tokenizers {
    /// Word pieces that were trained elsewhere: its tokens in the order of their ids, special ones left out; the one that hides a
    /// word is `[MASK]`.
    ///
    /// # Errors
    ///
    /// When a token stands there twice; the message names no file.
    pub fn of_word_pieces(tokens: Vec<String>, config: SubwordConfig) -> Result<Self, String> {
        let hidden = |token: String| if token == BERT_MASK { HIDDEN.to_string() } else { token };
        let vocabulary = tokens.into_iter().map(hidden).collect();
        let config = TokenizersConfig::Same(TokenizerConfig::WordPiece(config));
        Saved::new(config, Side::WordPiece { vocabulary }, None).with_mask(true).build()
    }

    /// A byte-level BPE that was trained elsewhere: its tokens in the order of their ids, special ones left out, its
    /// merges, and those of the tokens that were added, which texts have whole.
    ///
    /// # Errors
    ///
    /// When the merges do not fit the tokens, or a token stands there twice, or an added one not at all; the message
    /// names no file.
    pub fn of_byte_pairs(
        tokens: Vec<String>,
        merges: Vec<(String, String)>,
        added: Vec<String>,
        config: SubwordConfig,
    ) -> Result<Self, String> {
        let config = TokenizersConfig::Same(TokenizerConfig::ByteBpe(config));
        Saved::new(config, Side::ByteBpe { vocabulary: tokens, merges, added }, None).build()
    }

    /// SentencePiece models that were trained elsewhere. Each side has its tokens in the order of their ids, special ones left out,
    /// and what cuts its texts; with `config.shared` the tokens are those of both sides.
    ///
    /// # Errors
    ///
    /// When a token stands there twice, or there are no pieces; the message names no file.
    pub fn of_sentence_pieces(sides: [(Vec<String>, Cutter); 2], config: SubwordConfig) -> Result<Self, String> {
        let [source, target] = sides.map(|(vocabulary, cutter)| Side::SentencePiece { vocabulary, cutter });
        let config = TokenizersConfig::Same(TokenizerConfig::SentencePiece(config));
        Saved::new(config, source, Some(target)).build()
    }

    /// What cuts the texts of source and target, of pieces that were trained elsewhere.
    pub fn cutters(&self) -> Option<[&Cutter; 2]> {
        fn cutter(side: &Side) -> Option<&Cutter> {
            match side {
                Side::SentencePiece { cutter, .. } => Some(cutter),
                _ => None,
            }
        }
        let (source, target) = self.saved.sides();
        Some([cutter(source)?, cutter(target.unwrap_or(source))?])
    }
}
