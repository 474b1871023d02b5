# What CI does: fast checks first, then the tests, then the steps that compile the dependencies once more. `just` without a name lists it.

# CI has an MPI; where there is none, the feature is left out.
mpicc := `command -v mpicc || true`
features := if mpicc == "" { "" } else { "--features mpi" }
cargo_flags := "--release --locked " + features

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

# The tests, or those with a name
test *NAMES:
    cargo test {{cargo_flags}} -- {{NAMES}}

# What takes minutes: what every mechanism can learn, a second driver, and burn's operations on a GPU
learn:
    cargo test {{cargo_flags}} --test suite -- --ignored learns_what_it_can every_model_agrees burns_operations_on_a_gpu

# Lints
clippy:
    cargo clippy {{cargo_flags}} --all-targets -- -D warnings

# The library's documentation
doc:
    RUSTDOCFLAGS="-D warnings" cargo doc {{cargo_flags}} --no-deps

# Every cargo feature
features:
    .ci/features

# All of it, as CI
all:
    .ci/run
