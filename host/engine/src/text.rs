//! Text that comes from a plugin, made fit for logs, terminals and the ledger.

/// At most `limit` bytes of `text`, without control characters other than line feed and tab, so that it can neither fill a disk nor steer a terminal.
pub(crate) fn clean(text: &str, limit: usize) -> String {
    let mut out = String::with_capacity(text.len().min(limit));
    for c in text.chars() {
        let c = if c.is_control() && c != '\n' && c != '\t' { '\u{fffd}' } else { c };
        if out.len() + c.len_utf8() > limit {
            cut(&mut out, limit);
            break;
        }
        out.push(c);
    }
    out
}

/// Like [`clean`], and on one line.
pub(crate) fn clean_line(text: &str, limit: usize) -> String {
    clean(text, limit).replace(['\n', '\t'], " ")
}

/// Marks a text that is full as cut, within the limit.
fn cut(out: &mut String, limit: usize) {
    const MARK: &str = " [cut]";
    let mut keep = limit.saturating_sub(MARK.len()).min(out.len());
    while !out.is_char_boundary(keep) {
        keep -= 1;
    }
    out.truncate(keep);
    if limit >= MARK.len() {
        out.push_str(MARK);
    }
}

#[cfg(test)]
mod tests {
    use super::{clean, clean_line};

    #[test]
    fn long_text_is_cut_within_its_limit() {
        let text = clean(&"ü".repeat(1000), 101);
        assert!(text.len() <= 101, "{}", text.len());
        assert!(text.ends_with("ü [cut]"), "{text}");
        assert_eq!(clean("short", 5), "short");
    }

    #[test]
    fn escapes_do_not_reach_a_terminal() {
        assert_eq!(clean("a\u{1b}[31mb\r\n\tc", 100), "a\u{fffd}[31mb\u{fffd}\n\tc");
        assert_eq!(clean_line("a\nb", 100), "a b");
    }
}
