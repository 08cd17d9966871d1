//! Every code of this crate, with one line of meaning and one of remedy. The pages under `docs/errors/` follow this list.

use std::fmt;

use crate::error::{Fault, Retry};

macro_rules! codes {
    ($($name:ident = $text:literal, $fault:ident, $retry:ident, $meaning:literal, $remedy:literal;)*) => {
        /// What kind of failure something is.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        pub enum Code {
            $(#[doc = $meaning] $name,)*
        }

        impl Code {
            /// All of them, in the order of this file.
            pub const ALL: &'static [Code] = &[$(Code::$name,)*];

            /// The code as it is printed, and the name of its page.
            pub fn as_str(self) -> &'static str {
                match self { $(Code::$name => $text,)* }
            }

            /// What it means, in one line.
            pub fn meaning(self) -> &'static str {
                match self { $(Code::$name => $meaning,)* }
            }

            /// What to do, in one line.
            pub fn remedy(self) -> &'static str {
                match self { $(Code::$name => $remedy,)* }
            }

            /// Who has to act.
            pub fn fault(self) -> Fault {
                match self { $(Code::$name => Fault::$fault,)* }
            }

            /// Whether trying again can help although nobody acts.
            pub fn retry(self) -> Retry {
                match self { $(Code::$name => Retry::$retry,)* }
            }
        }
    };
}

codes! {
    EngineStart = "engine-start", Host, Never,
        "The WebAssembly engine could not be started.",
        "Check that the processor is supported (x86-64 or arm64) and that the process may map executable memory.";
    PluginCache = "plugin-cache", User, Never,
        "The folder for compiled plugins cannot be used, or others than its owner can write it.",
        "Make it a folder of the user that runs Weir, with mode 0700, or name another one.";
    PluginFolder = "plugin-folder", User, Never,
        "The folder of plugins cannot be read.",
        "Check the path under `plugins` and its permissions.";
    PluginFile = "plugin-file", User, Never,
        "The plugin's file cannot be read, or its name is not one a plugin can have.",
        "Check the file and its permissions; a name is lower-case letters, digits, `-` and `_`, and ends in `.wasm`.";
    PluginSize = "plugin-size", User, Never,
        "The plugin's file is larger than a plugin may be.",
        "Strip debug information from it.";
    PluginNotWasm = "plugin-not-wasm", User, Never,
        "The file is not WebAssembly, or it is damaged.",
        "Build it again, or copy it again.";
    PluginCoreModule = "plugin-core-module", User, Never,
        "The file is a core module; a plugin is a component.",
        "Build for `wasm32-wasip2`, or run `wasm-tools component new` with the WASI adapter.";
    ContractMissing = "contract-missing", User, Never,
        "The component does not export the sink interface.",
        "Build it against the folder `wit/` of a supported version.";
    ContractVersion = "contract-version", User, Never,
        "The plugin was built against a version of the contract that this host does not serve.",
        "Use a plugin built against a supported version, or a host that serves the plugin's.";
    ContractShape = "contract-shape", Plugin, Never,
        "The component's sink interface has the right name but other types.",
        "Build it against the released contract, unchanged.";
    PluginImport = "plugin-import", Plugin, Never,
        "The plugin imports something that no grant can give.",
        "Build it without that import; a plugin may import the interfaces of WASI 0.2.";
    PluginCompile = "plugin-compile", Plugin, Never,
        "The component cannot be compiled.",
        "Build it with a current toolchain and without experimental WebAssembly features.";
    PluginDescription = "plugin-description", Plugin, Never,
        "What the plugin says about itself is not acceptable.",
        "Correct what `describe` returns.";
    PluginStart = "plugin-start", Plugin, Later,
        "An instance of the plugin could not be made.",
        "Read the message and the plugin's last log lines; if it needs more memory, raise `limits.memory`.";
    GrantHttp = "grant-http", User, Never,
        "A granted address is not host:port.",
        "Write the host name or address and the port, without scheme and path: `127.0.0.1:8030`.";
    GrantFolder = "grant-folder", User, Later,
        "A granted folder cannot be opened.",
        "Create the folder, or correct its path under `grant.folders`.";
    GrantCa = "grant-ca", User, Never,
        "The file of certificate authorities cannot be read, or holds none.",
        "Name a PEM file with the certificates of the authorities to trust.";
    HttpNotGranted = "http-not-granted", User, Never,
        "The plugin sent an HTTP request to an address that is not granted.",
        "Add the address to `grant.http` if the plugin should reach it.";
    PluginUnavailable = "plugin-unavailable", Target, Later,
        "The plugin says that the target cannot be reached, or is not able to answer now.",
        "Check the target and the network; Weir tries again.";
    PluginRefused = "plugin-refused", User, Never,
        "The plugin says that the target refuses the config, the credentials or the schema.",
        "Correct what the message names, in the sink's config or at the target.";
    PluginBadData = "plugin-bad-data", User, Never,
        "The plugin says that the target refuses the transaction because of some of its records, and cannot say which.",
        "Find the records by the target's message and correct them at the source.";
    PluginConflict = "plugin-conflict", User, Never,
        "The target knows a transaction that the ledger does not: the ledger is older than the target.",
        "Put the newest ledger back; do not go on with a restored copy.";
    PluginBroken = "plugin-broken", Plugin, Later,
        "The plugin reports a bug of its own.",
        "Report it to the plugin's author, with the log lines.";
    PluginTrap = "plugin-trap", Plugin, Later,
        "The plugin crashed.",
        "Report it to the plugin's author, with the log lines.";
    PluginTimeout = "plugin-timeout", Plugin, Later,
        "A call did not return within the limit.",
        "Check the target; if calls take that long by nature, raise `limits.call`.";
    PluginMemory = "plugin-memory", User, Never,
        "The plugin asked for more memory than it may have.",
        "Raise `limits.memory`, or make checkpoints smaller if the plugin buffers.";
    PluginTable = "plugin-table", Plugin, Never,
        "The plugin asked for a larger table than it may have.",
        "Report it to the plugin's author.";
    PluginTransfer = "plugin-transfer", Plugin, Never,
        "The plugin handed over more bytes in one call than it may.",
        "Report it to the plugin's author.";
    PluginHandleSize = "plugin-handle-size", Plugin, Never,
        "The plugin returned a prepared handle that is larger than a handle may be.",
        "Report it to the plugin's author: a handle names what is prepared, and does not carry it.";
    PluginRejection = "plugin-rejection", Plugin, Never,
        "The plugin rejected a record that is not in the batch, or one record twice.",
        "Report it to the plugin's author.";
    PluginProfile = "plugin-profile", Plugin, Never,
        "What the plugin asks for and promises after `open` is not acceptable.",
        "Report it to the plugin's author.";
    PluginAnswer = "plugin-answer", Plugin, Never,
        "The plugin's answer is not a value of the contract.",
        "Report it to the plugin's author.";
    PluginClose = "plugin-close", Host, Later,
        "Work that an ended instance had under way on this machine did not end in time.",
        "Check the disks and network mounts among the granted folders.";
    PluginDead = "plugin-dead", Host, Later,
        "An instance was called after a failure that ended it.",
        "Report it to Weir, with the log: the host should have made a new one.";
    HandleFormat = "handle-format", User, Never,
        "A prepared handle has a format that the loaded plugin does not commit.",
        "Put back a version of the plugin that commits this format until nothing is owed.";
    WrongInstance = "wrong-instance", Host, Never,
        "A transaction of one sink or lane was handed to an instance of another.",
        "Report it to Weir, with the log.";
    ColumnMissing = "column-missing", User, Never,
        "The plugin asks for keys, timestamps, headers or record ends that the batch does not have.",
        "Use a source that has them, or configure the sink without.";
}

impl fmt::Display for Code {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

impl serde::Serialize for Code {
    fn serialize<S: serde::Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        to.serialize_str(self.as_str())
    }
}
