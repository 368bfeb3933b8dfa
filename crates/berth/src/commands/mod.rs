//! One file a command: its arguments, and what it does with them.
//!
//! A command reads through the console, asks the modules that know, and prints. Never talks to a stream the console
//! did not give it.

pub mod completions;
pub mod convert;
pub mod crds;
pub mod demo;
pub mod drain;
pub mod explain;
pub mod freeze;
pub mod get;
pub mod hub;
pub mod install;
pub mod man;
pub mod plan;
pub mod run;
pub mod uninstall;
pub mod up;
pub mod version;
pub mod webhook;
pub mod what_if;

use std::path::PathBuf;

use clap::{Args, ValueEnum, ValueHint};
use serde_json::Value;

pub use crate::fleet::connect::ServerArgs;
pub use what_if::WhatIfArgs;

use crate::console::Console;
use crate::manifest::{write_json_list, write_yaml_document};

/// The manifests a command reads.
#[derive(Debug, Clone, Args)]
pub struct InputArgs {
    /// File or folder of manifests; can be given several times.
    ///
    /// A folder is read with everything below it: *.yaml, *.yml and *.json, except hidden files and folders. `-` is
    /// standard input.
    #[arg(short = 'f', long = "filename", value_name = "PATH", required = true, value_hint = ValueHint::AnyPath)]
    pub files: Vec<PathBuf>,
}

/// The world a command is about: manifests, or what a server holds.
#[derive(Debug, Clone, Default, Args)]
pub struct WorldArgs {
    /// File or folder of manifests; can be given several times. Without any, a server is asked.
    ///
    /// A folder is read with everything below it: *.yaml, *.yml and *.json, except hidden files and folders. `-` is
    /// standard input. Where kubectl would find no server either, the hub of the default data directory is asked.
    #[arg(short = 'f', long = "filename", value_name = "PATH", value_hint = ValueHint::AnyPath, conflicts_with_all = ["kubeconfig", "context"])]
    pub files: Vec<PathBuf>,

    /// The server.
    #[command(flatten)]
    pub server: ServerArgs,
}

impl WorldArgs {
    /// Where something is missing, for messages.
    pub(crate) fn place(&self) -> &'static str {
        if self.files.is_empty() { "on the server" } else { "in the input" }
    }
}

/// How results are printed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, ValueEnum)]
pub enum OutputFormat {
    /// Columns for people.
    #[default]
    Table,
    /// More columns for people.
    Wide,
    /// JSON; objects as one v1 List.
    Json,
    /// YAML; objects as a stream of documents.
    Yaml,
}

/// How manifests are printed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, ValueEnum)]
pub enum ManifestFormat {
    /// A stream of documents.
    #[default]
    Yaml,
    /// One v1 List.
    Json,
}

impl ManifestFormat {
    /// Prints objects in their order.
    pub(crate) fn write(self, objects: &[Value], console: &mut Console<'_>) -> anyhow::Result<()> {
        match self {
            Self::Yaml => {
                for (index, object) in objects.iter().enumerate() {
                    write_yaml_document(&mut console.out, object, index == 0)?;
                }
            }
            Self::Json => write_json_list(&mut console.out, objects)?,
        }
        Ok(())
    }
}
