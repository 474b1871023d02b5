//! Tokenizers as the library `tokenizers` reads them: its `tokenizer.json`.

use super::side::Side;
use super::{EOS, SPECIALS, Tokenizers, UNK};
use serde_json::{Value, json};

impl Tokenizers {
    /// `tokenizer.json` for the source, and for the target if it has one of its own. Ids are the same; a text gets `</s>` behind
    /// it, or before it if `is_text`: that is how a language model's text begins, but where the end of a line is text as any.
    ///
    /// # Errors
    /// The reason, for kinds that the library cannot tell apart or put together, and for vocabularies with a word that
    /// is spelled like a special token.
    pub fn for_hugging_face(&self, is_text: bool) -> Result<(Vec<u8>, Option<Vec<u8>>), String> {
        if let Some(token) = self.spelled_as_special() {
            return Err(format!(
                "its vocabulary has a word that is spelled like the special token {token}, and the library knows tokens \
                 by their spelling; a tokenizer that is trained now leaves such words out"
            ));
        }
        let (source, target) = self.saved.sides();
        let file = |side: &Side, lowercase: bool| -> Result<Vec<u8>, String> {
            Ok((serde_json::to_string(&tokenizer(side, lowercase, is_text)?).expect("plain data") + "\n").into_bytes())
        };
        let source = file(source, self.config().source().is_lowercase())?;
        let target = target.map(|side| file(side, self.config().target().is_lowercase())).transpose()?;
        Ok((source, target))
    }
}

fn tokenizer(side: &Side, lowercase: bool, is_text: bool) -> Result<Value, String> {
    // Every match is a word; what stands between matches too.
    let cut = |pattern: &str| json!({ "type": "Split", "pattern": { "Regex": pattern }, "behavior": "Isolated", "invert": false });
    let marked = || {
        vec![
            json!({ "type": "Prepend", "prepend": "▁" }),
            json!({ "type": "Replace", "pattern": { "String": " " }, "content": "▁" }),
        ]
    };
    let unmarked = || {
        json!({ "type": "Sequence", "decoders": [
        { "type": "Replace", "pattern": { "String": "▁" }, "content": " " },
        { "type": "Fuse" },
        { "type": "Strip", "content": " ", "start": 1, "stop": 0 },
    ] })
    };
    // As `subword` cuts: words with the space before them, other characters for themselves.
    let words = || cut(r"▁?\w+|▁?[^\w▁]|▁");
    let levels = |tokens: &[String]| json!({ "type": "WordLevel", "vocab": numbered(tokens), "unk_token": SPECIALS[UNK as usize] });
    let (mut normalizers, cutter, model, decoder) = match side {
        Side::Char { vocabulary } => {
            let tokens: Vec<String> = vocabulary.iter().map(char::to_string).collect();
            (Vec::new(), cut(r"[\s\S]"), levels(&tokens), json!({ "type": "Fuse" }))
        }
        Side::Word { split_punctuation: false, vocabulary } => {
            let joiner = json!({ "type": "Sequence", "decoders": [
                { "type": "Replace", "pattern": { "Regex": "^" }, "content": " " },
                { "type": "Fuse" },
                { "type": "Strip", "content": " ", "start": 1, "stop": 0 },
            ] });
            (Vec::new(), json!({ "type": "WhitespaceSplit" }), levels(vocabulary), joiner)
        }
        Side::Bpe { vocabulary, merges } => {
            let model = json!({
                "type": "BPE", "vocab": numbered(vocabulary), "merges": merges, "unk_token": SPECIALS[UNK as usize],
                "fuse_unk": true, "byte_fallback": false, "dropout": null, "continuing_subword_prefix": null,
                "end_of_word_suffix": null, "ignore_merges": false,
            });
            (marked(), words(), model, unmarked())
        }
        Side::Unigram { pieces } => {
            let specials = SPECIALS.iter().map(|token| (token.to_string(), 0.0));
            let all: Vec<(String, f64)> = specials.chain(pieces.iter().cloned()).collect();
            let model = json!({ "type": "Unigram", "unk_id": UNK, "vocab": all, "byte_fallback": false });
            (marked(), words(), model, unmarked())
        }
        Side::ByteBpe { vocabulary, merges, .. } => {
            let bytes =
                json!({ "type": "ByteLevel", "add_prefix_space": false, "trim_offsets": true, "use_regex": true });
            let model = json!({
                "type": "BPE", "vocab": numbered(vocabulary), "merges": merges, "unk_token": null, "fuse_unk": false,
                "byte_fallback": false, "dropout": null, "continuing_subword_prefix": null, "end_of_word_suffix": null,
                "ignore_merges": false,
            });
            (Vec::new(), bytes.clone(), model, bytes)
        }
        Side::Word { split_punctuation: true, .. } => {
            return Err("words with punctuation split off have joiner marks, which the library cannot make; `bpe` and `unigram` it can".into());
        }
        Side::SentencePiece { .. } => {
            return Err("its pieces are those of source.spm and target.spm, which SentencePiece itself reads".into());
        }
        Side::WordPiece { .. } | Side::Numbers { .. } => return Err("it is for models that write no text".into()),
    };
    if lowercase {
        normalizers.insert(0, json!({ "type": "Lowercase" }));
    }
    let listed = |id: usize, token: &str, is_special: bool| {
        json!({
            "id": id, "content": token, "single_word": false, "lstrip": false, "rstrip": false, "normalized": false,
            "special": is_special,
        })
    };
    let mut whole: Vec<Value> = SPECIALS.iter().enumerate().map(|(id, token)| listed(id, token, true)).collect();
    if let Side::ByteBpe { vocabulary, added, .. } = side {
        let ids = vocabulary.iter().enumerate().filter(|(_, token)| added.contains(token));
        whole.extend(ids.map(|(i, token)| listed(SPECIALS.len() + i, token, false)));
    }
    let end = SPECIALS[EOS as usize];
    let symbol = json!({ "SpecialToken": { "id": end, "type_id": 0 } });
    let text = json!({ "Sequence": { "id": "A", "type_id": 0 } });
    let single = match (is_text, side) {
        (true, Side::ByteBpe { .. }) => json!([text]),
        (true, _) => json!([symbol, text]),
        (false, _) => json!([text, symbol]),
    };
    Ok(json!({
        "version": "1.0",
        "truncation": null,
        "padding": null,
        "added_tokens": whole,
        "normalizer": if normalizers.is_empty() { Value::Null } else { json!({ "type": "Sequence", "normalizers": normalizers }) },
        "pre_tokenizer": cutter,
        "post_processor": {
            "type": "TemplateProcessing",
            "single": single,
            "pair": [{ "Sequence": { "id": "A", "type_id": 0 } }, { "Sequence": { "id": "B", "type_id": 1 } }],
            "special_tokens": { end: { "id": end, "ids": [EOS], "tokens": [end] } },
        },
        "decoder": decoder,
        "model": model,
    }))
}

/// All tokens with their ids, special ones first.
fn numbered(tokens: &[String]) -> Value {
    let all = SPECIALS.iter().copied().chain(tokens.iter().map(String::as_str));
    all.enumerate().map(|(id, token)| (token.to_owned(), Value::from(id))).collect::<serde_json::Map<_, _>>().into()
}
