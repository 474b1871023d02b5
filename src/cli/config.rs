//! `lookback config`.

use super::print;
use crate::config::Config;
use crate::error::Result;
use clap::{Args, Subcommand};
use std::path::PathBuf;

#[derive(Subcommand, Debug)]
pub(super) enum ConfigCommand {
    /// Print the resolved config, with every field.
    Show(ConfigArgs),
    /// Check a config and say what is wrong.
    Check(ConfigArgs),
    /// Print the JSON schema of configs, with the meaning of every key.
    Schema,
}

#[derive(Args, Debug)]
pub(super) struct ConfigArgs {
    /// The config; without it, the quick start.
    config: Option<PathBuf>,
    /// Override a key of the config.
    #[arg(long = "set", value_name = "KEY.PATH=VALUE")]
    set: Vec<String>,
}

pub(super) fn run(command: ConfigCommand) -> Result<()> {
    match command {
        ConfigCommand::Show(args) => {
            let config = Config::load(args.config.as_deref(), &args.set)?;
            print(&config.to_toml())
        }
        ConfigCommand::Check(args) => {
            Config::load(args.config.as_deref(), &args.set)?;
            let name = args.config.map_or("the quick start".into(), |path| path.display().to_string());
            print(&format!("{name}: every key and value is right\n"))
        }
        ConfigCommand::Schema => {
            let schema = schemars::schema_for!(Config);
            print(&(serde_json::to_string_pretty(&schema).expect("a schema is plain data") + "\n"))
        }
    }
}
