//! A project with both sinks, and the records that it must show.

use std::path::{Path, PathBuf};

use weir_tests::compare::{Comparison, Records, temporary_files};
use weir_tests::emulator::{Emulator, ORDERS_COLUMNS};
use weir_tests::paths;
use weir_tests::project::Project;

/// A pipeline of generated orders into Doris and into files.
pub(crate) struct Orders {
    pub(crate) project: Project,
    pub(crate) emulator: Emulator,
    pub(crate) config: PathBuf,
    records: u64,
}

impl Orders {
    /// Ready to run. `source` and `checkpoint` are YAML flow mappings' contents.
    pub(crate) async fn new(records: u64, source: &str, checkpoint: &str) -> Self {
        let project = Project::default();
        let emulator = Emulator::start(&project.folder("doris")).await;
        emulator.create_table("shop", "orders", ORDERS_COLUMNS).await;
        let config = orders_config(&project, &emulator, &format!("generate: {{ records: {records}{source} }}"), checkpoint);
        Self { project, emulator, config, records }
    }

    /// Where the file sink writes.
    pub(crate) fn out(&self) -> PathBuf {
        self.project.join("out")
    }

    /// Checks by content that both targets show every record once, that no transaction is left at Doris, and no temporary file.
    pub(crate) async fn assert_exactly_once(&self) {
        let read = generated_orders(self.records).await;
        assert_shown_once(&read, &self.emulator, &self.out()).await;
    }
}

/// The YAML of a pipeline `orders` into the table `shop.orders` and the folder `out`.
pub(crate) fn orders_config(project: &Project, emulator: &Emulator, source: &str, checkpoint: &str) -> PathBuf {
    project.folder("out");
    project.config(&paths::plugins(), &orders_pipeline("orders", emulator, source, checkpoint))
}

/// One pipeline's YAML.
pub(crate) fn orders_pipeline(name: &str, emulator: &Emulator, source: &str, checkpoint: &str) -> String {
    format!(
        r#"{name}:
  source:
    {source}
  checkpoint: {{ {checkpoint} }}
  restart: {{ backoff: 100ms, max_backoff: 1s }}
  sinks:
    doris:
      plugin: doris
      config: {{ fe: ["{fe}"], database: shop, table: orders, user: root, password: "", settle: 1 }}
      grant: {{ http: {grants} }}
    archive:
      plugin: file
      config: {{ directory: /out, prefix: orders }}
      grant: {{ folders: {{ /out: ./out }} }}
"#,
        fe = emulator.fe(),
        grants = emulator.grants(),
    )
}

/// The orders that the source generates, as it promises them.
pub(crate) async fn generated_orders(records: u64) -> Records {
    let mut read = Records::default();
    weir_tests::orders::each(records, |line| read.add(line)).await;
    read
}

/// Holds both targets against what was read.
pub(crate) async fn assert_shown_once(read: &Records, emulator: &Emulator, out: &Path) {
    let exact = Comparison { found: read.len(), missing: 0, duplicated: 0 };
    let mut doris = read.same_hashes();
    emulator.add_visible("shop", "orders", &mut doris).await;
    assert_eq!(read.compare(&doris), exact, "in doris");
    let mut files = read.same_hashes();
    files.add_folder(out, None);
    assert_eq!(read.compare(&files), exact, "in files");
    assert_eq!(emulator.unfinished().await, 0, "transactions are left PREPARE or PRECOMMITTED");
    assert_eq!(temporary_files(out), Vec::<String>::new(), "temporary files are left");
}
