//! The tree has no circle, and its parts know of each other what the design says.

use regex::Regex;
use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

/// A source file, by the path of its module: `["training", "loss"]`.
type Module = Vec<String>;

/// The modules of the crate, each with the paths that its code names, from the root of the crate.
struct Tree {
    /// Paths of items, by module.
    named: BTreeMap<Module, BTreeSet<Module>>,
    /// What a module passes on under a name of its own: the name, and the path that it stands for.
    passed_on: BTreeMap<(Module, String), Module>,
}

fn source_files(folder: &Path, found: &mut Vec<PathBuf>) {
    for entry in std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()) {
        match entry.is_dir() {
            true => source_files(&entry, found),
            false if entry.extension().is_some_and(|extension| extension == "rs") => found.push(entry),
            false => {}
        }
    }
}

fn module_of(path: &Path) -> Module {
    let parts = path.with_extension("").iter().map(|part| part.to_string_lossy().into_owned()).collect::<Vec<_>>();
    parts.into_iter().filter(|part| !["mod", "lib", "main"].contains(&part.as_str())).collect()
}

/// The paths of a `use` tree: `a::{b, c::d}` is `a::b` and `a::c::d`.
fn expand(tree: &str, found: &mut Vec<String>) {
    let Some(open) = tree.find('{') else {
        found.push(tree.split(" as ").next().unwrap().trim().to_string());
        return;
    };
    let (before, mut depth, mut start) = (&tree[..open], 0, open + 1);
    for (at, c) in tree.char_indices().skip(open) {
        match c {
            '{' => depth += 1,
            '}' => depth -= 1,
            _ => {}
        }
        let is_end = c == '}' && depth == 0;
        if is_end || c == ',' && depth == 1 {
            let part = tree[start..at].trim();
            if !part.is_empty() {
                expand(&format!("{before}{part}"), found);
            }
            start = at + 1;
        }
        if is_end {
            return;
        }
    }
}

impl Tree {
    fn read() -> Self {
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("src");
        let mut files = Vec::new();
        source_files(&root, &mut files);
        let comment = Regex::new(r"(?m)^\s*//.*$").unwrap();
        let uses = Regex::new(r"(?s)(pub(?:\([^)]*\))?\s+)?use\s+((?:crate|self|super|[a-z_]+)::[^;]+);").unwrap();
        let inline = Regex::new(r"\b(crate|super)((?:::\w+)+)").unwrap();
        let mut tree = Self { named: BTreeMap::new(), passed_on: BTreeMap::new() };
        for file in files {
            let module = module_of(file.strip_prefix(&root).unwrap());
            let text = comment.replace_all(&std::fs::read_to_string(&file).unwrap(), "").into_owned();
            // Unit tests may look anywhere.
            let text = text.split("#[cfg(test)]").next().unwrap().to_string();
            let mut paths = BTreeSet::new();
            for found in uses.captures_iter(&text) {
                let mut expanded = Vec::new();
                expand(&found[2].split_whitespace().collect::<Vec<_>>().join(" "), &mut expanded);
                for path in expanded {
                    let Some(path) = absolute(&module, &path) else { continue };
                    let name = path.last().unwrap().clone();
                    if found.get(1).is_some() {
                        tree.passed_on.insert((module.clone(), name), path);
                    } else {
                        paths.insert(path);
                    }
                }
            }
            let code = uses.replace_all(&text, "");
            paths.extend(inline.captures_iter(&code).filter_map(|found| absolute(&module, &found[0])));
            tree.named.insert(module, paths);
        }
        tree
    }

    /// The file that has the item of a path: behind what modules pass on.
    fn file_of(&self, path: &Module) -> Module {
        let mut path = path.clone();
        for _ in 0..8 {
            let mut known = path.clone();
            while !self.named.contains_key(&known) {
                known.pop();
            }
            let Some(next) = path.get(known.len()) else { return known };
            let Some(target) = self.passed_on.get(&(known.clone(), next.clone())) else { return known };
            let rest = path[known.len() + 1..].to_vec();
            path = [target.clone(), rest].concat();
        }
        panic!("{path:?} is passed on in a circle")
    }

    /// Which files each file needs. A folder's own `mod.rs` is left out: it holds what its files share, and lists them.
    fn needs(&self) -> BTreeMap<Module, BTreeSet<Module>> {
        let needs_of = |module: &Module, paths: &BTreeSet<Module>| {
            let files = paths.iter().map(|path| self.file_of(path));
            files.filter(|file| !module.starts_with(file)).collect::<BTreeSet<_>>()
        };
        self.named.iter().map(|(module, paths)| (module.clone(), needs_of(module, paths))).collect()
    }
}

/// A path of this crate from its root; nothing for those of other crates.
fn absolute(module: &Module, path: &str) -> Option<Module> {
    let mut parts = path.split("::").map(str::trim);
    let mut base = match parts.next()? {
        // The arithmetic is a package of its own, whose root is its folder.
        "crate" => module.iter().take(1).filter(|part| *part == "kernels").cloned().collect(),
        "self" => module.clone(),
        "super" => module[..module.len() - 1].to_vec(),
        // A child that is named from its parent.
        _ => return None,
    };
    for part in parts {
        match part {
            "super" => drop(base.pop()),
            "self" => {}
            part => base.push(part.to_string()),
        }
    }
    Some(base)
}

/// A way from a file back to itself, if there is one.
fn circle(needs: &BTreeMap<Module, BTreeSet<Module>>) -> Option<Vec<Module>> {
    fn visit(
        file: &Module,
        needs: &BTreeMap<Module, BTreeSet<Module>>,
        way: &mut Vec<Module>,
        done: &mut BTreeSet<Module>,
    ) -> Option<Vec<Module>> {
        if let Some(at) = way.iter().position(|seen| seen == file) {
            return Some([&way[at..], std::slice::from_ref(file)].concat());
        }
        if !done.insert(file.clone()) {
            return None;
        }
        way.push(file.clone());
        let found = needs.get(file).into_iter().flatten().find_map(|next| visit(next, needs, way, done));
        way.pop();
        found
    }
    let mut done = BTreeSet::new();
    needs.keys().find_map(|file| visit(file, needs, &mut Vec::new(), &mut done))
}

fn shown(way: &[Module]) -> String {
    way.iter().map(|module| module.join("::")).collect::<Vec<_>>().join(" -> ")
}

#[test]
fn no_two_parts_and_no_two_files_need_each_other() {
    let needs = Tree::read().needs();
    let mut parts: BTreeMap<Module, BTreeSet<Module>> = BTreeMap::new();
    for (module, files) in &needs {
        let part = |module: &Module| module[..module.len().min(1)].to_vec();
        let others = files.iter().map(part).filter(|other| *other != part(module));
        parts.entry(part(module)).or_default().extend(others);
    }
    assert!(parts[&vec!["training".to_string()]].contains(&vec!["models".to_string()]), "the tree was read");
    let way = circle(&parts);
    assert!(way.is_none(), "parts in a circle: {}", shown(&way.unwrap()));
    let mut needs = needs;
    let mut circles = Vec::new();
    while let Some(way) = circle(&needs) {
        circles.push(shown(&way));
        needs.get_mut(&way[way.len() - 2]).unwrap().remove(&way[way.len() - 1]);
    }
    assert!(circles.is_empty(), "files in a circle:\n{}", circles.join("\n"));
}

#[test]
fn training_knows_no_family_of_models_no_config_file_and_no_tokenizer() {
    let tree = Tree::read();
    let allowed = [
        "backend", "error", "files", "kernels", "layers", "memory", "notice", "ops", "pool", "ranks", "scoring",
        "training",
    ];
    for (module, paths) in tree.named.iter().filter(|(module, _)| module.first().is_some_and(|part| part == "training"))
    {
        for path in paths {
            let is_allowed = allowed.contains(&path[0].as_str())
                || path.starts_with(&["models".into(), "weights".into()])
                || path.starts_with(&["data".into(), "batch".into()])
                || *path == ["data", "PAD"];
            assert!(is_allowed, "{} knows {}", module.join("::"), path.join("::"));
        }
    }
}

/// Every path that the modules of `part` name, beside their own.
fn named_by(tree: &Tree, part: &str) -> Vec<(String, Module)> {
    let of_part = tree.named.iter().filter(|(module, _)| module.first().is_some_and(|first| first == part));
    let paths = of_part.flat_map(|(module, paths)| paths.iter().map(move |path| (module.join("::"), path.clone())));
    paths.filter(|(_, path)| path[0] != part).collect()
}

#[test]
fn arithmetic_knows_no_tensor_and_layers_do_not_ask_where_they_run() {
    let tree = Tree::read();
    let beside = named_by(&tree, "kernels");
    assert!(beside.is_empty(), "the arithmetic, a package of its own, knows {beside:?}");
    for (module, path) in named_by(&tree, "ops") {
        assert!(["backend", "kernels", "random"].contains(&path[0].as_str()), "{module} knows {}", path.join("::"));
    }
    for (module, path) in named_by(&tree, "layers") {
        assert_ne!(path[0], "backend", "{module} knows {}", path.join("::"));
    }
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("src/kernels");
    let mut files = Vec::new();
    source_files(&root, &mut files);
    assert!(files.len() > 10, "the kernels were read");
    for file in files {
        assert!(!std::fs::read_to_string(&file).unwrap().contains("burn::"), "{} knows burn", file.display());
    }
    let manifest: toml::Table = std::fs::read_to_string(root.join("Cargo.toml")).unwrap().parse().unwrap();
    let needed = manifest["dependencies"].as_table().unwrap().keys();
    assert!(needed.into_iter().all(|name| !name.contains("burn")), "the arithmetic is built without burn");
}
