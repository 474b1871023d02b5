//! The table of mechanisms.

use super::root;
use std::fs;

#[test]
fn every_line_of_config_in_the_table_is_accepted() {
    let table = fs::read_to_string(root().join("docs/reference/mechanisms.md")).unwrap();
    let mut n_checked = 0;
    for row in table.lines().filter(|line| line.starts_with("| ")).skip(2) {
        let config = row.split(" | ").nth(2).unwrap_or_else(|| panic!("no third column: {row}"));
        for setting in config.split('`').skip(1).step_by(2).filter(|setting| setting.contains('=')) {
            let (key, value) = setting.split_once(" = ").expect("key = value");
            let key = if key.starts_with("training.") || key.starts_with("decoding.") {
                key.to_string()
            } else {
                format!("model.{key}")
            };
            let attempts = [
                vec!["model={ kind = \"rnn\", d_hidden = 8 }"],
                vec!["model={ kind = \"rnn\", d_hidden = 8, n_layers = 2 }"],
                vec!["model={ kind = \"rnn\", directions = \"forward\", attention = { kind = \"luong\" } }"],
                vec!["model={ kind = \"transformer\" }", "tokenizer.shared=true"],
                vec!["model={ kind = \"decoder-only\" }"],
                vec!["model={ kind = \"encoder-only\" }"],
                vec!["model={ kind = \"encoder-only\" }", "tokenizer={ kind = \"numbers\" }", "training={}"],
                vec![
                    "model={ kind = \"encoder-only\" }",
                    "data={ hold_out_per_mille = 50, text = { train = [\"text.txt\"] } }",
                ],
                vec![
                    "model={ kind = \"decoder-only\" }",
                    "data={ hold_out_per_mille = 50, text = { train = [\"text.txt\"] } }",
                ],
            ];
            let is_accepted = attempts.into_iter().any(|base| {
                let settings = base.into_iter().map(String::from).chain([format!("{key}={value}")]);
                lookback::experiment::Config::load(None, &settings.collect::<Vec<_>>()).is_ok()
            });
            assert!(is_accepted, "no model takes {setting}");
            n_checked += 1;
        }
    }
    assert!(n_checked > 35, "only {n_checked} settings were found");
}
