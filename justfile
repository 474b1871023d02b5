# What CI does, cheapest first. `just` without a name lists it.

cargo_flags := "--release --locked"

default:
    @just --list --unsorted

# Formatting
fmt:
    cargo fmt --all --check

# Spelling (pip install typos)
typos:
    typos

# Licences and sources of dependencies (cargo install cargo-deny)
deny:
    cargo deny --all-features check licenses bans sources

# The book (cargo install mdbook)
book:
    mdbook build docs

# Lints
clippy:
    cargo clippy {{cargo_flags}} --all-targets -- -D warnings

# The tests, or those with a name
test *NAMES:
    cargo test {{cargo_flags}} -- {{NAMES}}

# The library's documentation
doc:
    RUSTDOCFLAGS="-D warnings" cargo doc {{cargo_flags}} --no-deps

# Every cargo feature
features:
    .ci/features

# What every score, window, placement and position scheme can learn
learn:
    cargo test {{cargo_flags}} --test suite -- --ignored learns_what_it_can

# All of it, as CI
all:
    .ci/run
