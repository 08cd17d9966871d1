//! Memory that does not grow with the epoch.

use weir_tests::emulator::Emulator;
use weir_tests::host::Host;
use weir_tests::paths;
use weir_tests::project::Project;

/// Bytes of one epoch.
const EPOCH_BYTES: u64 = 2_000_000_000;
/// The most memory that the host may have resident.
const MEMORY_ALLOWED: u64 = 300_000_000;

#[tokio::test(flavor = "multi_thread")]
async fn an_epoch_of_two_gigabytes_through_doris_keeps_the_host_under_300_megabytes() {
    let project = Project::default();
    let emulator = Emulator::start_discarding(&project.folder("doris")).await;
    emulator.create_table("shop", "orders", weir_tests::emulator::ORDERS_COLUMNS).await;
    // Later orders have longer numbers, so it is a little more.
    let records = EPOCH_BYTES / weir_tests::orders::lines(1).await.len() as u64;
    let pipeline = format!(
        r#"orders:
  source:
    generate: {{ records: {records} }}
  checkpoint: {{ interval: 1h }}
  sinks:
    doris:
      plugin: doris
      config: {{ fe: ["{fe}"], database: shop, table: orders, user: root, password: "" }}
      grant: {{ http: {grants} }}
"#,
        fe = emulator.fe(),
        grants = emulator.grants(),
    );
    let mut host = Host::start(&project.config(&paths::plugins(), &pipeline), &[]);
    let mut peak = 0;
    while !host.has_ended() {
        peak = host.try_peak_memory().unwrap_or(peak);
        tokio::time::sleep(std::time::Duration::from_millis(20)).await;
    }
    let end = host.wait().await;
    assert_eq!(end.code, Some(0), "{}", end.log);
    assert_eq!(emulator.visible_rows("shop", "orders").await, records);
    assert_eq!(emulator.loads_begun().await, 1, "it was one epoch");
    assert!(peak > 0 && peak < MEMORY_ALLOWED, "the host had {peak} bytes resident");
}
