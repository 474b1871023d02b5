//! `tokenizer.json`: refused, or tokenizers that cut any text into ids that they know.
#![no_main]

use libfuzzer_sys::fuzz_target;
use lookback::data::Tokenizers;

const TEXTS: [&str; 6] =
    ["", "a b", "ein Hund läuft.", "<mask> </s> <unk>", "\u{0}\u{301}\u{200d}👩‍👩‍👧", "▁▁ \u{202e}x\ty"];

fuzz_target!(|json: &[u8]| {
    let Ok(tokenizers) = Tokenizers::from_json(json) else { return };
    for tokenizer in [tokenizers.source(), tokenizers.target()] {
        for text in TEXTS {
            let ids = tokenizer.encode(text);
            assert!(ids.iter().all(|id| (*id as usize) < tokenizer.vocab_size()));
            let _ = (tokenizer.decode(&ids), tokenizer.unknown(text), tokenizer.around_masks(text));
        }
    }
    let again = Tokenizers::from_json(tokenizers.to_json().as_bytes()).expect("what was written is right");
    assert_eq!(again.to_json(), tokenizers.to_json());
});
