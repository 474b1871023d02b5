//! The packages that the program stands on are named, and there is one version of each.

use std::path::Path;

fn table(file: &str) -> toml::Table {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join(file);
    std::fs::read_to_string(path).unwrap().parse().unwrap()
}

#[test]
fn every_named_package_is_a_direct_dependency_with_one_version() {
    let manifest = table("Cargo.toml");
    let lock = table("Cargo.lock");
    let versions = |name: &str| -> Vec<String> {
        let packages = lock["package"].as_array().unwrap().iter();
        let found = packages.filter(|package| package["name"].as_str() == Some(name));
        found.map(|package| package["version"].as_str().unwrap().to_string()).collect()
    };
    for name in ["burn", "burn-wgpu", "burn-ndarray", "burn-train", "serde", "clap"] {
        assert!(manifest["dependencies"].get(name).is_some(), "{name} is no direct dependency");
        assert_eq!(versions(name).len(), 1, "{name}: {:?}", versions(name));
    }
    for name in ["burn-wgpu", "burn-ndarray", "burn-train"] {
        assert_eq!(versions(name), versions("burn"), "{name} has another version than burn");
        let pinned = manifest["dependencies"][name]["version"].as_str().unwrap();
        assert_eq!(pinned, format!("={}", versions("burn")[0]), "{name}");
    }
}
