//! `lookback config`.

use super::{ConfigCommand, print};
use crate::config::Config;
use crate::error::Result;

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
