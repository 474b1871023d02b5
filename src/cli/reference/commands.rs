//! Every command with its arguments and examples, from what clap knows of them.

use super::cell;
use crate::cli::Cli;
use clap::{Arg, Command, CommandFactory};

const HEAD: &str = "# Commands

This page is written by the program: `lookback reference --out docs/reference`. A command says the same with `--help`.

Results go to standard output, everything else to standard error. [Exit codes](errors.md) are listed on a page of their own.
";

/// The page.
pub(super) fn page() -> String {
    let mut root = Cli::command();
    root.build();
    let mut page = HEAD.to_owned();
    page += "\n| command | what it does |\n| --- | --- |\n";
    for command in visible(&root) {
        let name = command.get_name();
        page += &format!("| [`{name}`](#lookback-{name}) | {} |\n", cell(&about(command)));
    }
    page += "\n## Options of every command\n\n";
    page += &table(root.get_arguments().filter(|arg| arg.is_global_set()));
    visible(&root).for_each(|command| describe(command, "lookback", &mut page));
    page
}

/// The commands below one that a reader is to know of.
fn visible(command: &Command) -> impl Iterator<Item = &Command> {
    command.get_subcommands().filter(|below| below.get_name() != "help" && !below.is_hide_set())
}

fn about(command: &Command) -> String {
    command.get_about().map(ToString::to_string).unwrap_or_default()
}

/// A command, then those below it.
fn describe(command: &Command, above: &str, page: &mut String) {
    let path = format!("{above} {}", command.get_name());
    *page += &format!("\n## {path}\n\n{}.\n", about(command).trim_end_matches('.'));
    let below: Vec<&Command> = visible(command).collect();
    if below.is_empty() {
        let usage = command.clone().render_usage().to_string();
        *page += &format!("\n```text\n{}\n```\n", usage.trim());
        let arguments: Vec<&Arg> = command
            .get_arguments()
            .filter(|arg| !arg.is_global_set() && !arg.is_hide_set())
            .filter(|arg| !["help", "version"].contains(&arg.get_id().as_str()))
            .collect();
        if !arguments.is_empty() {
            *page += &format!("\n{}", table(arguments.into_iter()));
        }
    }
    if let Some(text) = command.get_after_help() {
        *page += &format!("\n```text\n{}\n```\n", text.to_string().trim());
    }
    below.into_iter().for_each(|command| describe(command, &path, page));
}

fn table<'a>(arguments: impl Iterator<Item = &'a Arg>) -> String {
    let mut rows = String::from("| argument | meaning | values |\n| --- | --- | --- |\n");
    for arg in arguments {
        let help = arg.get_long_help().or(arg.get_help()).map(ToString::to_string).unwrap_or_default();
        rows += &format!("| {} | {} | {} |\n", spelling(arg), cell(&help), values(arg));
    }
    rows
}

/// How an argument is written: `-r`, `--run <RUN>`.
fn spelling(arg: &Arg) -> String {
    let names: Vec<&str> =
        arg.get_value_names().map(|names| names.iter().map(|name| name.as_str()).collect()).unwrap_or_default();
    let value = match (arg.get_action().takes_values(), names.is_empty()) {
        (false, _) => String::new(),
        (true, true) => arg.get_id().as_str().to_uppercase(),
        (true, false) => names.join(" "),
    };
    let Some(long) = arg.get_long() else { return format!("`<{value}>`") };
    let short = arg.get_short().map(|short| format!("`-{short}`, ")).unwrap_or_default();
    match value.is_empty() {
        true => format!("{short}`--{long}`"),
        false => format!("{short}`--{long} <{value}>`").replace('|', "\\|"),
    }
}

/// The allowed values of an argument, and its default.
fn values(arg: &Arg) -> String {
    let possible: Vec<String> = match arg.get_action().takes_values() {
        true => arg.get_possible_values().iter().filter(|value| !value.is_hide_set()).map(quoted).collect(),
        false => Vec::new(),
    };
    let default = match arg.is_hide_default_value_set() || !arg.get_action().takes_values() {
        true => String::new(),
        false => arg.get_default_values().iter().map(|value| value.to_string_lossy()).collect::<Vec<_>>().join(" "),
    };
    let mut parts = Vec::new();
    if !possible.is_empty() {
        parts.push(possible.join(", "));
    }
    if !default.is_empty() {
        parts.push(format!("default `{default}`"));
    }
    parts.join("; ")
}

fn quoted(value: &clap::builder::PossibleValue) -> String {
    format!("`{}`", value.get_name())
}
