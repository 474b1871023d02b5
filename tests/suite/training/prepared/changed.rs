//! Files that change while they are prepared, and vocabularies that change before preparing goes on.

use super::*;

#[test]
fn a_file_that_changes_while_it_is_prepared_is_refused_and_nothing_is_kept_of_it() {
    for (name, file) in [("pairs.toml", "pairs.tsv"), ("text.toml", "second.txt")] {
        let dir = folder(5000);
        let (config, _) = configs(&dir, name, &["tokenizer={ kind = \"char\" }"]);
        let folder = config.data.prepared.clone().unwrap();
        let path = dir.path().join(file);
        let before = fs::read(&path).unwrap();
        let mut is_changed = false;
        let mut change = |at: Preparing| {
            // As when somebody appends to a corpus: its checksum has been taken.
            if at.what == "tokenizing" && !is_changed {
                is_changed = true;
                fs::write(&path, [&before[..], b"w1 ba tab\tx1 1\n"].concat()).unwrap();
            }
            Ok(())
        };
        let fault = prepare(&config, &in_shards(10_000), &mut change).unwrap_err().to_string();
        assert_says(&fault, &[file, "has changed while it was prepared; prepare it again"]);
        let left: Vec<String> = bytes_of(&folder).into_iter().map(|(name, _)| name).collect();
        assert_eq!(left, ["begun.json"], "{name}");
        // What was there at first is there again: nothing of the other may be taken for it.
        fs::write(&path, &before).unwrap();
        assert_eq!(made(&config, 10_000).n_kept, 0);
        let again = bytes_of(&folder);
        fs::remove_dir_all(&folder).unwrap();
        made(&config, 10_000);
        let shards = |files: &[(String, Vec<u8>)]| {
            files.iter().filter(|(name, _)| name.ends_with(".shard")).cloned().collect::<Vec<_>>()
        };
        assert!(shards(&again) == shards(&bytes_of(&folder)), "{name}: other shards");
    }
}

#[test]
fn another_tokenizer_in_a_folder_that_was_cut_off_is_not_gone_on_with() {
    let dir = folder(5000);
    let (config, _) = configs(&dir, "pairs.toml", &["tokenizer={ kind = \"char\" }"]);
    let folder = config.data.prepared.clone().unwrap();
    made(&config, 10_000);
    let whole = bytes_of(&folder);
    fs::remove_dir_all(&folder).unwrap();
    let stop = |at: Preparing| match at.what {
        "tokenizing" => Err(lookback::error::Error::message("cut off")),
        _ => Ok(()),
    };
    prepare(&config, &in_shards(10_000), &mut { stop }).unwrap_err();
    // One of the same kind, of other text.
    let other = dir.path().join("other");
    fs::create_dir(&other).unwrap();
    let pairs: String = (0..40).map(|i| format!("xyz\tuvw{i}\n")).collect();
    fs::write(other.join("pairs.tsv"), pairs).unwrap();
    fs::copy(dir.path().join("pairs.toml"), other.join("pairs.toml")).unwrap();
    let by_letters = "tokenizer={ kind = \"char\" }".to_string();
    let of_other = Config::load(Some(&other.join("pairs.toml")), &[by_letters]).unwrap();
    made(&of_other, 10_000);
    let taken = of_other.data.prepared.unwrap().join("tokenizer.json");
    assert!(fs::read(&taken).unwrap() != fs::read(folder.join("tokenizer.json")).unwrap());
    fs::copy(taken, folder.join("tokenizer.json")).unwrap();
    made(&config, 10_000);
    assert!(bytes_of(&folder) == whole, "prepared with the tokenizer of other data");
}
