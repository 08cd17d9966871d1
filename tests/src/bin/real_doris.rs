//! The main job against a Doris that somebody else runs: docs/doris.md says how.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "a test that cannot go on must say so and end")]

use std::process::{Command, ExitCode};
use std::time::Duration;

use weir_tests::host::Host;
use weir_tests::paths;
use weir_tests::project::Project;

/// How many orders are sent.
const ORDERS: u64 = 100_000;
/// How often the host is killed.
const KILLS: u32 = 5;

/// Where Doris is.
struct Doris {
    fe: String,
    be: String,
    query: String,
    user: String,
    password: String,
    database: String,
}

#[tokio::main]
async fn main() -> ExitCode {
    let doris = Doris::from_environment();
    let before = doris.ids();
    assert!(before.is_empty(), "{}.orders has {} rows; empty it first", doris.database, before.len());
    let project = Project::default();
    let config = project.config(&paths::plugins(), &doris.pipeline());
    for _ in 0..KILLS {
        let mut host = Host::start(&config, &[]);
        tokio::time::sleep(Duration::from_secs(1)).await;
        assert!(host.kill().await, "the source ended before the last kill");
    }
    let end = Host::start(&config, &[]).wait().await;
    assert_eq!(end.code, Some(0), "{}", end.log);

    // Doris shows a commit a moment after it has answered.
    let mut ids = doris.ids();
    for _ in 0..60 {
        if ids.len() as u64 >= ORDERS {
            break;
        }
        tokio::time::sleep(Duration::from_secs(1)).await;
        ids = doris.ids();
    }
    let visible = ids.len() as u64;
    ids.sort_unstable();
    ids.dedup();
    let different = ids.len() as u64;
    println!("doris: {ORDERS} sent, {visible} visible, {} missing, {} duplicated", ORDERS - different.min(ORDERS), visible - different);
    if visible == ORDERS && different == ORDERS { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

impl Doris {
    fn from_environment() -> Self {
        let get = |name: &str, default: Option<&str>| {
            let value = std::env::var(format!("WEIR_DORIS_{name}")).ok().or_else(|| default.map(str::to_owned));
            value.unwrap_or_else(|| panic!("WEIR_DORIS_{name} is not set; docs/doris.md lists the variables"))
        };
        let fe = get("FE", None);
        let host = fe.trim_start_matches("http://").trim_start_matches("https://").rsplit_once(':').map_or("127.0.0.1", |(host, _)| host);
        Self {
            query: get("QUERY", Some(&format!("{host}:9030"))),
            be: get("BE", None),
            user: get("USER", Some("root")),
            password: get("PASSWORD", Some("")),
            database: get("DATABASE", Some("weir_test")),
            fe,
        }
    }

    fn pipeline(&self) -> String {
        let fe_address = self.fe.trim_start_matches("http://").trim_start_matches("https://");
        let grants: Vec<String> = std::iter::once(fe_address).chain(self.be.split(',')).map(|address| format!("\"{address}\"")).collect();
        format!(
            r#"orders:
  source:
    generate: {{ records: {ORDERS}, rate: 10_000 }}
  checkpoint: {{ interval: 500ms }}
  sinks:
    doris:
      plugin: doris
      config: {{ fe: ["{}"], database: {}, table: orders, user: "{}", password: "{}", settle: 5 }}
      grant: {{ http: [{}] }}
"#,
            self.fe,
            self.database,
            self.user,
            self.password,
            grants.join(", ")
        )
    }

    /// The ids that the table shows, by the `mysql` command line.
    fn ids(&self) -> Vec<u64> {
        let (host, port) = self.query.rsplit_once(':').expect("WEIR_DORIS_QUERY is host:port");
        let output = Command::new("mysql")
            .args(["--host", host, "--port", port, "--user", &self.user, "--batch", "--skip-column-names"])
            .arg("--execute")
            .arg(format!("SELECT id FROM {}.orders", self.database))
            .env("MYSQL_PWD", &self.password)
            .output()
            .expect("the mysql command line is installed");
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        String::from_utf8(output.stdout).unwrap().lines().map(|id| id.parse().unwrap()).collect()
    }
}
