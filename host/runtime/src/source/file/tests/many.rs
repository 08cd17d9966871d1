//! Thousands of files.

use super::*;

#[tokio::test]
async fn two_thousand_files_are_read_one_at_a_time_and_found_again() {
    let mut folder = Folder::followed(FileFormat::Lines);
    for number in 0..2000 {
        folder.write(&format!("in-{number:04}"), format!("{number}\n{number} again\n"));
    }
    let mut run = folder.start().await.unwrap();
    let splits = run.source.discover(&folder.known).await.unwrap();
    assert_eq!(splits.len(), 2000);
    let mut records = Records::new();
    for split in &splits {
        run.read_split(split, &mut records).await.unwrap();
        // A driver keeps only some readers.
        run.readers.clear();
    }
    assert_eq!(records.len(), 4000);
    assert!(run.source.discover(&folder.known).await.unwrap().is_empty(), "what was read is not listed, decided or not");
    folder.decide(&run);
    folder.append("in-1234", "news\n");
    folder.write("in-new", "more news\n");
    assert_eq!(run.source.discover(&folder.known).await.unwrap().len(), 2);
    let mut news = folder.read().await.unwrap();
    news.sort();
    assert_eq!(news, ["more news", "news"]);
}
