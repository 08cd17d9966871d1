//! What happens inside a call before it is answered. Abuses of the answer itself are in `answer.rs`.

use std::fs::{self, File};
use std::io;
use std::path::Path;
use std::time::Duration;

use contract::types::Error;
use wasip2::clocks::monotonic_clock;

use crate::config::{Abuse, Call, Config};
use crate::{errors, http};

/// How much is taken at a time by `grow`, in bytes.
const GROWTH: usize = 16 * 1024 * 1024;

/// Which abuse this call is for, if any. Uses up one of `times`.
pub(crate) fn due(config: &Config, call: Call) -> Result<Option<Abuse>, Error> {
    let Some(abuse) = config.abuse else { return Ok(None) };
    if abuse.belongs_to().unwrap_or(config.r#in) != call {
        return Ok(None);
    }
    let Some(times) = config.times else { return Ok(Some(abuse)) };
    // A file for each time, so that instances one after the other and side by side count together.
    for time in 0..times {
        match File::create_new(Path::new(&config.directory).join(format!(".abuse-{time}"))) {
            Ok(_) => return Ok(Some(abuse)),
            Err(found) if found.kind() == io::ErrorKind::AlreadyExists => {}
            Err(found) => return Err(errors::from_io("count the abuses", &found)),
        }
    }
    Ok(None)
}

/// Does it. Returns where the abuse leaves the call to go on.
pub(crate) fn act(abuse: Abuse, config: &Config) -> Result<(), Error> {
    let bytes = config.bytes.unwrap_or(abuse.default_bytes());
    match abuse {
        Abuse::Trap => panic!("it was asked to trap"),
        // With success, which must not be taken for one.
        Abuse::Exit => std::process::exit(0),
        Abuse::Spin => spin(),
        Abuse::Recurse => Err(errors::broken(format!("recursion ended with {}", recurse(0)))),
        Abuse::WaitPollable => {
            monotonic_clock::subscribe_duration(u64::MAX).block();
            Err(errors::broken("a wait of 584 years ended"))
        }
        Abuse::WaitHttp | Abuse::CallHttp => {
            let status = http::get(config.address.as_deref().unwrap_or_default()).map_err(errors::refused)?;
            Err(errors::broken(format!("the call was answered with {status}")))
        }
        Abuse::CallTcp => match std::net::TcpStream::connect(config.address.as_deref().unwrap_or_default()) {
            Ok(_) => Err(errors::broken("the connection was made")),
            Err(found) => Err(errors::refused(format!("the connection failed: {found}"))),
        },
        Abuse::Grow => grow(),
        Abuse::Hoard => hoard(),
        Abuse::FloodLog => {
            flood(bytes);
            Ok(())
        }
        Abuse::LongLogLine => {
            eprint!("{}", "x".repeat(bytes));
            Ok(())
        }
        Abuse::HugeWrite => {
            let answer = wasip2::cli::stderr::get_stderr().write(&vec![b'x'; bytes]);
            Err(errors::refused(format!("the write was answered with {answer:?}")))
        }
        Abuse::Escape => escape(&config.directory),
        Abuse::Slow => {
            std::thread::sleep(Duration::from_millis(config.ms));
            Ok(())
        }
        Abuse::Fail => {
            let mut error = errors::error(config.error_kind(), "it was asked to fail");
            error.code = "TEST".to_owned();
            Err(error)
        }
        Abuse::HugeError => Err(errors::refused("e".repeat(bytes))),
        Abuse::HugeTarget
        | Abuse::RejectLast
        | Abuse::RejectTwice
        | Abuse::RejectOutOfRange
        | Abuse::HugeReasons
        | Abuse::HugeHandle
        | Abuse::WrongRecords
        | Abuse::Verdict => Ok(()),
    }
}

fn spin() -> ! {
    let mut turns = 0_u64;
    loop {
        turns = std::hint::black_box(turns.wrapping_add(1));
    }
}

fn recurse(depth: u64) -> u64 {
    let frame = std::hint::black_box([depth; 64]);
    if depth == u64::MAX { depth } else { recurse(depth + 1).wrapping_add(frame[0]) }
}

/// Takes memory and keeps it, and touches each page so that it is really there.
fn grow() -> ! {
    loop {
        let mut taken = vec![0_u8; GROWTH];
        taken.iter_mut().step_by(4096).for_each(|byte| *byte = 1);
        std::mem::forget(std::hint::black_box(taken));
    }
}

/// Takes host objects and keeps them.
fn hoard() -> ! {
    loop {
        std::mem::forget(monotonic_clock::subscribe_duration(u64::MAX));
    }
}

fn flood(bytes: usize) {
    let line = "a line of a plugin that says the same thing over and over again, a hundred bytes of it every time, ok";
    for number in 0..bytes / line.len() {
        eprintln!("{number} {line}");
    }
}

/// Tries to read and write what was not granted, by every way out of a folder that there is.
fn escape(directory: &str) -> Result<(), Error> {
    let inside = Path::new(directory);
    let mut answers = Vec::new();
    for path in [inside.join("../escape-secret"), inside.join("link/escape-secret"), "/etc/hostname".into(), "../etc/hostname".into()] {
        if let Ok(found) = fs::read(&path) {
            return Err(errors::broken(format!("read {} bytes of {}", found.len(), path.display())));
        }
        if fs::write(&path, "escaped").is_ok() {
            return Err(errors::broken(format!("wrote {}", path.display())));
        }
        answers.push(path.display().to_string());
    }
    let environment = std::env::vars().map(|(name, _)| name).collect::<Vec<_>>();
    Err(errors::refused(format!("nothing could be reached of {}; environment: {environment:?}", answers.join(", "))))
}
