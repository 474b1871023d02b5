//! Reading a run folder and drawing its attention: which source word each written word looked at, as characters.
//!
//! cargo run --release --example draw_attention -- runs/first 'a sentence'

use lookback::backend::Backend;
use lookback::experiment::Run;
use lookback::report::attention::Part;
use lookback::report::attention::collect::{collect, write};

/// From no weight to all of it.
const SHADES: [char; 5] = [' ', '░', '▒', '▓', '█'];

fn main() -> lookback::error::Result<()> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [run, sentence] = &arguments[..] else {
        println!("give a run folder and a sentence");
        return Ok(());
    };
    let loaded = Run::open(run.as_ref())?.load_model(&Backend::Flex.open()?, None, |warning| println!("{warning}"))?;
    let (sentences, seed) = ([(1, sentence.clone())], loaded.config.seed);
    let written = write(&loaded.model, &loaded.tokenizers, &sentences, &loaded.config.decoding, seed, |_| ());
    let maps = collect(&loaded.model, &loaded.tokenizers, &written[0])?;
    let Some(map) = maps.average(Part::Cross) else {
        println!("the model has no attention to its source");
        return Ok(());
    };
    for (row, word) in maps.rows(Part::Cross).iter().enumerate() {
        let shade = |weight: &f32| SHADES[((weight * SHADES.len() as f32) as usize).min(SHADES.len() - 1)];
        println!("{word:>12} {}", map.row(row).iter().map(shade).map(|c| format!("{c}{c}")).collect::<String>());
    }
    println!("{:>12} {}", "", maps.columns(Part::Cross).join(" "));
    Ok(())
}
