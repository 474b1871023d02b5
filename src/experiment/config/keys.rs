//! Dotted keys of a table of TOML, set by `key.path=value` and taken out again; `layers[2]` is a place in a list, counted from 0.

/// The largest whole number of TOML.
pub(super) const LARGEST: u64 = i64::MAX as u64;

/// Applies one `key.path=value`.
pub(super) fn apply(table: &mut toml::Table, setting: &str) -> Result<(), String> {
    let (key, value) =
        setting.split_once('=').ok_or("write key.path=value, as in --set training.learning_rate=0.001")?;
    let (key, value) = (key.trim(), value.trim());
    let value = match toml::from_str::<toml::Table>(&format!("value = {value}")) {
        Ok(mut table) => table.remove("value").ok_or("the value is empty")?,
        Err(_) if value.parse::<i64>().is_err() && is_whole(value) => return Err(too_large()),
        // What is no TOML value is a string: `--set backend=flex` needs no quotes.
        Err(_) => toml::Value::String(value.to_string()),
    };
    let mut sections: Vec<String> = key.split('.').map(String::from).collect();
    let last = sections.pop().filter(|last| !last.is_empty()).ok_or("the key is empty")?;
    insert(table, &sections, &last, value)
}

/// Whether a text is a decimal whole number, of any size.
fn is_whole(text: &str) -> bool {
    let digits = text.strip_prefix(['-', '+']).unwrap_or(text);
    !digits.is_empty() && digits.chars().all(|c| c.is_ascii_digit() || c == '_')
}

/// The complaint about a whole number that TOML does not hold.
pub(super) fn too_large() -> String {
    format!("is too large; the largest whole number of a config is {LARGEST}")
}

/// Whether an override sets `key`, or the table that it is in.
pub(super) fn sets(setting: &str, key: &[String]) -> bool {
    let name = setting.split('=').next().unwrap_or_default().trim();
    let (mut own, mut wanted) = (name.split('.'), key.iter().map(String::as_str));
    own.all(|part| wanted.next().is_none_or(|wanted| wanted == part))
}

/// Sets a key in a section, which is made if it is not there.
pub(super) fn insert(
    table: &mut toml::Table,
    sections: &[String],
    key: &str,
    value: toml::Value,
) -> Result<(), String> {
    let mut section = table;
    for name in sections {
        let entry = section.entry(name.clone()).or_insert_with(|| toml::Value::Table(toml::Table::new()));
        section = entry.as_table_mut().ok_or_else(|| format!("`{name}` is a value, not a section"))?;
    }
    section.insert(key.to_string(), value);
    Ok(())
}

pub(super) fn remove(table: &mut toml::Table, key: &[String]) {
    if let Some((last, sections)) = key.split_last()
        && let Some(section) = section_of(table, sections)
    {
        match indexed(last) {
            (name, Some(place)) => {
                let list = section.get_mut(name).and_then(toml::Value::as_array_mut);
                if let Some(list) = list.filter(|list| place < list.len()) {
                    list.remove(place);
                }
            }
            (name, None) => {
                section.remove(name);
            }
        }
    }
}

/// The table at `sections`, if there is one.
pub(super) fn section_of<'t>(table: &'t mut toml::Table, sections: &[String]) -> Option<&'t mut toml::Table> {
    sections.iter().try_fold(table, |table, part| match indexed(part) {
        (name, Some(place)) => table.get_mut(name)?.as_array_mut()?.get_mut(place)?.as_table_mut(),
        (name, None) => table.get_mut(name)?.as_table_mut(),
    })
}

/// The name and the place in a list of `name[2]`, counted from 0; of other names the name.
pub(super) fn indexed(part: &str) -> (&str, Option<usize>) {
    let place = part.strip_suffix(']').and_then(|part| part.rsplit_once('['));
    match place.and_then(|(name, place)| Some((name, place.parse().ok()?))) {
        Some((name, place)) => (name, Some(place)),
        None => (part, None),
    }
}
